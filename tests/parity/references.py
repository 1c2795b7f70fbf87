"""Folders of references that are made once, and again when the scripts that make them change."""

import hashlib
import shutil


def make_once(folder, scripts, version, fill):
    """Calls fill(folder) on an empty folder, unless these scripts filled it, with this version of
    the package that computes."""
    text = b"".join(script.read_bytes() for script in scripts) + version.encode()
    stamp = hashlib.sha256(text).hexdigest()
    mark = folder / "stamp.txt"
    if mark.exists() and mark.read_text() == stamp:
        print(f"{folder} is up to date")
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    fill(folder)
    mark.write_text(stamp)
