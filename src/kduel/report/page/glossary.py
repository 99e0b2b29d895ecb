"""Terms on the page: each is linked at its first use to what it means, at the end of the page, which needs no network."""

import re
from collections import Counter

from markupsafe import Markup

from kduel.core.toml import table_beside

TERMS: dict[str, str] = table_beside(__file__)
FORMS = {
    "interim analyses": "interim analysis",
    **{f"{term}s": term for term in TERMS},
    **{term: term for term in TERMS},
}
USES = re.compile(rf"\b({'|'.join(sorted(FORMS, key=len, reverse=True))})\b", re.IGNORECASE)
TAG = re.compile(r"(<[^>]*>)")
PROSE = {"p", "caption", "figcaption", "li", "th"}
"""Elements in which a term may be linked; of heads of tables those of columns."""
NO_PROSE = {"a", "code", "pre", "summary", "svg"}


def link_terms(page: str) -> str:
    """The page with its terms linked and explained. Text in it is escaped, so that every `<` begins a tag."""
    start, end = page.index("<body>"), page.index("</main>")
    depth: Counter[str] = Counter()
    used: list[str] = []

    def link(found: re.Match[str]) -> str:
        term = FORMS[found[0].lower()]
        if term in used:
            return found[0]
        used.append(term)
        return f'<a class="term" href="#{term_id(term)}">{found[0]}</a>'

    pieces = TAG.split(page[start:end])
    for place, piece in enumerate(pieces):
        if piece.startswith("<"):
            name = re.split(r"[\s/>]", piece[1:].removeprefix("/"), maxsplit=1)[0]
            counted = name in NO_PROSE or (name in PROSE and not piece.startswith('<th scope="row'))
            if counted and not piece.endswith("/>"):
                depth[name] = max(0, depth[name] + (-1 if piece.startswith("</") else 1))
        elif any(depth[name] for name in PROSE) and not any(depth[name] for name in NO_PROSE):
            pieces[place] = USES.sub(link, piece)
    return page[:start] + "".join(pieces) + str(terms_section(used)) + page[end:]


def terms_section(used: list[str]) -> Markup:
    rows = Markup().join(
        Markup('<dt id="{}">{}</dt><dd>{}</dd>\n').format(term_id(term), term, TERMS[term]) for term in sorted(used)
    )
    opened = Markup('<section id="terms"><details>\n<summary><h2>Terms</h2></summary>\n<dl>\n')
    return Markup("{}{}</dl>\n</details></section>\n").format(opened, rows) if used else Markup()


def term_id(term: str) -> str:
    return f"term-{term.replace(' ', '-')}"
