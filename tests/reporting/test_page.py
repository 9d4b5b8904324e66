"""Whatever comes from data is text."""

from html.parser import HTMLParser

from bisvm.reporting.writing import UNPRINTABLE


class Reader(HTMLParser):
    """Tags with their attributes, and all text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def test_characters_that_are_no_text_are_replaced():
    shown = "a\x00b\x1b\ud800\u202ec".translate(UNPRINTABLE)
    assert shown == "a\ufffdb\ufffd\ufffd\ufffdc"
    woman = "\U0001f469\u200d\U0001f52c"
    for fine in ("tab\tline\nna\u00efve \u65e5\u672c", woman, "\u00e9"):
        assert fine.translate(UNPRINTABLE) == fine
