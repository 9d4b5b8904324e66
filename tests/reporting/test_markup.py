"""Whatever comes from data is text."""

import random
from html.parser import HTMLParser

import pytest

from bisvm.reporting.markup import Markup, escape, markup, named, table


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


def test_values_are_escaped_and_markup_is_not():
    assert markup("<p>{x}</p>", x="<b>&\"'") == "<p>&lt;b&gt;&amp;&quot;&#x27;</p>"
    inner = markup("<b>{x}</b>", x="<")
    assert markup("<p>{x}</p>", x=inner) == "<p><b>&lt;</b></p>"
    assert markup("{x}", x=[inner, "<", None, 3]) == "<b>&lt;</b>&lt;3"
    assert isinstance(markup("{x}", x=1), Markup)


def test_text_made_of_markup_is_text_again():
    bold = markup("<b>{x}</b>", x="y")
    assert markup("{x}", x=f"{bold}") == "&lt;b&gt;y&lt;/b&gt;"
    assert markup("{x}", x=bold + "<i>") == "&lt;b&gt;y&lt;/b&gt;&lt;i&gt;"
    assert markup("{x}", x=bold.replace("y", "<")) == "&lt;b&gt;&lt;&lt;/b&gt;"


def test_braces_in_values_are_no_places():
    assert markup("{a}{b}", a="{b}", b="{a.__class__}") == "{b}{a.__class__}"


def test_characters_that_are_no_text_are_replaced():
    assert escape("a\x00b\x1b\ud800\u202ec") == "a\ufffdb\ufffd\ufffd\ufffdc"
    assert escape("tab\tline\nnaïve 日本 👩‍🔬") == "tab\tline\nnaïve 日本 👩‍🔬"
    escape("\ud800").encode("utf-8")


@pytest.mark.parametrize("seed", range(20))
def test_no_text_makes_a_tag_or_an_attribute(seed):
    rng = random.Random(seed)
    pieces = ["<", ">", '"', "'", "&", "script", "/", "=", " ", "onload", "<!--", "]]>"]
    harm = "".join(rng.choices([*pieces, "{", "}", "\\", "`", "\u2028"], k=40))
    page = Reader(
        markup(
            '<p title="{x}">{x}</p>{t}', x=harm, t=table([harm], [[harm]], caption="c")
        )
    )
    known = {"p", "div", "table", "caption", "thead", "tbody", "tr", "th"}
    assert {tag for tag, _ in page.tags} == known
    assert page.tags[0] == ("p", {"title": harm})
    assert page.text.count(harm) == 3


def test_tables_have_heads_and_values_to_sort_by():
    made = table(
        ["name", "share"], [(named("<"), ("12%", 0.12))], caption="all", numeric=(1,),
        sortable=True,
    )  # fmt: skip
    page = Reader(made)
    assert ("th", {"scope": "row"}) in page.tags
    assert ("td", {"class": "number", "data-value": "0.12"}) in page.tags
    assert sum(tag == "button" for tag, _ in page.tags) == 2
    assert "<bdi>&lt;</bdi>" in made
