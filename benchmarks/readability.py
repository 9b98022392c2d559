"""How hard pages of a guide are to read, of this documentation and of others.

Run ``python benchmarks/readability.py doc OTHER ... --output benchmarks/results/readability.csv`` with
folders of reStructuredText, such as ``doc`` of skrub and ``docs/user_guide`` of fairlearn. For each page
it has the number of words and Flesch's reading ease (100 is very easy, 30 is for universities), for each
folder the median is printed. Code, tables, formulas and directives are left out, and a name or formula
is a word of one syllable. Syllables are groups of vowels: one rule for all, that needs no dictionary.
"""

import argparse
import re
import statistics
from pathlib import Path

# a page of fewer words of prose is an index
LEAST = 150
# directives whose text is prose; all others are left out with what is indented below them
PROSE = ("note", "warning", "tip", "important", "admonition", "topic", "dropdown", "seealso")
# fields, underlines, examples and tables
MARKUP = r"""\s*(:[\w-]+:|[=\-~^"'#*+]{3,}|>>>|\.\.\. |\+[-=+]+|\|)"""


def prose(text):
    """Return the sentences of a page, without markup."""
    kept, hidden = [], None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if line.strip() and hidden is not None and indent <= hidden:
            hidden = None
        if hidden is None and (found := re.match(r"\s*\.\. (?:([\w:-]+)::|.*)", line)):
            if (found[1] or "") not in PROSE:
                hidden = indent
            continue
        if hidden is None and not re.match(
            r"\s*(:[\w-]+:.*|[=\-~^\"'#*+]{3,}.*|>>>.*|\.\.\. .*|\+[-=+]+|\|.*)$", line
        ):
            kept.append(line)
        if hidden is None and line.rstrip().endswith("::"):
            hidden = indent
    text = "\n".join(kept)
    text = re.sub(r":(?:doc|ref|term):`([^`<]*?)(?:\s*<[^>]*>)?`", r"\1", text)  # links to pages
    text = re.sub(r":[\w:]+:`[^`]*`", "it", text)  # names and formulas
    text = re.sub(r"`([^`<]+?)\s*<[^>]*>`_*", r"\1", text)  # links
    text = re.sub(r"``[^`]*``", "it", text)  # code is a word like others
    text = re.sub(r"[*`|]|_\b", "", text)
    # titles, items and paragraphs end a sentence
    parts = re.split(r"\n\s*\n|\n\s*[-*] |\n\s*\d+\. ", text)
    parts = [" ".join(part.split()) for part in parts]
    return " ".join(
        part if part[-1:] in ".!?" else f"{part.rstrip(':')}." for part in parts if len(part.split()) > 3
    )


def syllables(word):
    """Return the number of groups of vowels, without a silent e."""
    word = re.sub(r"(?<=[^aeiouyl])e$|(?<=[^aeiouytd])ed$", "", word.lower())
    return max(1, len(re.findall("[aeiouy]+", word)))


def reading_ease(text):
    """Return Flesch's reading ease of a text."""
    words = re.findall(r"[A-Za-z][A-Za-z'-]*", text)
    sentences = max(1, len(re.findall(r"[.!?](?:\s|$)", text)))
    each = sum(map(syllables, words)) / len(words)
    return 206.835 - 1.015 * len(words) / sentences - 84.6 * each


def main():
    """Write a line for each page, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--output", type=Path)
    arguments, lines = parser.parse_args(), []
    for folder in arguments.folders:
        eases = {}
        # of a whole documentation the pages of its first level, of a guide all but notes on versions
        pages = folder.glob("*.rst" if (folder / "conf.py").exists() else "**/*.rst")
        for page in sorted(page for page in pages if not re.match(r"v\d", page.name)):
            text = prose(page.read_text(encoding="utf-8"))
            words = len(text.split())
            if words >= LEAST:
                eases[page.name] = reading_ease(text)
                lines.append(f"{folder},{page.name},{words},{eases[page.name]:.1f}")
                print(*lines[-1].split(","), sep="  ")
        if eases:
            print(f"{folder}: median {statistics.median(eases.values()):.1f} of {len(eases)} pages")
    if arguments.output:
        arguments.output.write_text("\n".join(["folder,page,words,reading_ease", *lines, ""]))


if __name__ == "__main__":
    main()
