"""The code blocks of a page of docs/: (language, text) in order. As a program it writes the only block
of a language to a file: code_blocks.py PAGE LANGUAGE OUT."""
import pathlib
import re
import sys

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def code_blocks(page):
    return BLOCK.findall(pathlib.Path(page).read_text(encoding="utf-8"))


def main():
    page, language, out = sys.argv[1:]
    (text,) = (text for found, text in code_blocks(page) if found == language)
    pathlib.Path(out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
