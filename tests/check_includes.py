#!/usr/bin/env python3
"""Fails when an include points upwards: a module of fcp/ or apps/ may use only those below it.

Fails too where a file asks an operator for its name, or a score or calibration for its name or type: what
is known of them stands in fcp/nn/ops and fcp/methods.
"""

import pathlib
import re
import sys

# Each module with the modules it may include besides itself and base. The lists are closed: what a
# module may include through another stands here too.
BELOW = {
    "base": [],
    "conformal": [],
    "evaluate/measures": ["conformal"],
    "monitoring": ["conformal", "evaluate/measures"],
    "nn": [],
    "bounds": ["nn"],
    "search": ["nn"],
    "data": [],
    "data/images": ["data"],
    "training": ["nn", "data", "data/images"],
    "distributed": ["conformal"],
    "methods": ["conformal", "bounds", "search", "nn"],
    "predictor": ["methods", "conformal", "bounds", "search", "nn", "data", "data/images",
                  "distributed", "evaluate/measures"],
    "calibrate": ["predictor", "methods", "conformal", "bounds", "search", "nn", "data",
                  "data/images", "distributed", "training", "export"],
    "evaluate": ["predictor", "methods", "conformal", "bounds", "search", "nn",
                 "data", "data/images", "distributed", "evaluate/measures", "monitoring"],
    "export": ["predictor", "methods", "conformal", "bounds", "search", "nn"],
    "fit": ["evaluate", "calibrate", "predictor", "methods", "conformal", "bounds", "search",
            "nn", "data", "data/images", "distributed", "evaluate/measures", "training"],
    "api": ["fit", "evaluate", "calibrate", "predictor", "methods", "conformal", "bounds",
            "search", "nn", "data", "data/images", "training", "distributed", "export"],
    "apps/report": ["evaluate/measures", "evaluate", "calibrate", "predictor", "conformal", "data",
                    "data/images", "monitoring", "fit"],
    "apps/experiments": ["fit", "evaluate", "calibrate", "predictor", "methods", "conformal",
                         "bounds", "search", "nn", "data", "data/images", "training",
                         "distributed", "evaluate/measures", "export", "apps/report"],
    "apps/server": ["fit", "evaluate", "calibrate", "predictor", "methods", "conformal", "nn",
                    "data", "evaluate/measures", "monitoring", "apps/report"],
    "apps/cli": ["api", "fit", "evaluate", "calibrate", "predictor", "methods", "conformal", "bounds",
                 "search", "nn", "data", "data/images", "training", "distributed", "export",
                 "evaluate/measures", "monitoring", "apps/report", "apps/experiments",
                 "apps/server"],
}
# The public headers, include/fcp/*.h, each with the module that defines what it declares: a module may
# include those of the modules below it. They include each other alone, and one of them libtorch.
PUBLIC = {"error.h": "base", "version.h": "base", "level.h": "conformal", "interval.h": "conformal",
          "discoveries.h": "conformal", "predictor.h": "predictor", "tensors.h": "predictor", "export.h": "export",
          "calibrate.h": "api", "evaluate.h": "api", "fit.h": "api", "c_api.h": "api",
          "distribution.h": "api", "probabilities.h": "api", "outliers.h": "predictor",
          "deprecated.h": "api", "fcp.h": "api"}
PUBLIC_WITH_TORCH = {"tensors.h"}
NO_TORCH = {"base", "conformal", "evaluate/measures", "monitoring", "data", "data/images",
            "distributed", "apps/report"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"(?:fcp/)?((?<=fcp/)[^"]+|apps/[^"]+)"|<((?:torch|ATen|c10)/[^>]*)>)')

# Headers of nn that a module without libtorch may include: those of the graph and of what is known of
# operators by name. They include each other alone.
PLAIN = re.compile(r"fcp/(nn/graph/\w+|nn/ops/(op_traits|output_types|types))\.h")

# Files outside of fcp/nn/ops that may compare names of operators: they look for patterns of nodes, or
# write one node as others.
PATTERNS = {
    "fcp/export/gradients.cc", "fcp/export/graph_builder.cc", "fcp/nn/graph/batch_axis.cc",
    "fcp/nn/graph/carry.cc", "fcp/nn/graph/inline_if.cc", "fcp/nn/graph/lower_attention.cc",
    "fcp/nn/graph/narrow_tensors.cc", "fcp/nn/graph/onnx_reader.cc", "fcp/nn/graph/output_kind.cc",
    "fcp/nn/graph/select_first.cc", "fcp/nn/graph/simplify.cc", "fcp/nn/graph/static_sequences.cc",
    "fcp/nn/kernels/relu_mlp/relu_head.cc", "fcp/nn/runtime/batch_free.cc",
    "fcp/nn/runtime/bound_support.cc", "fcp/nn/runtime/fuse.cc", "fcp/nn/runtime/fuse_bytes.cc",
    "fcp/nn/runtime/rows_apart.cc", "fcp/search/front_layer.cc",
}
# How often files outside of fcp/methods may ask which score or calibration they have; less than 20 in all.
METHODS_ASKED = {
    "fcp/calibrate/choose.cc": 2,  # nothing is chosen yet: auto and rectified are requests, not methods
    "fcp/calibrate/quick_cut.cc": 1,  # a shortcut of one score
    "fcp/calibrate/surrogate_steps.cc": 2,  # two searches, each with options of its own
    "fcp/calibrate/update.cc": 1,  # a request
    "fcp/fit/fit.cc": 3,  # names of the option --calibration
    "fcp/fit/train.cc": 2,  # requests
    "apps/cli/calibrate.cc": 1,  # a request
    "apps/cli/segment_calibrate.cc": 2,  # the paper's settings of its own score
    "apps/experiments/segmentation_experiment.cc": 1,  # likewise
    "python/calibrated.cc": 2,  # a request
}
ASKS_METHOD = re.compile(r"\.as<\w+Options>|std::get<\w+Options>|"
                         r"[!=]= (?:\w+Options::kName|kAutoScore|kRectified)\b")
COMPARES = re.compile(r'\bop(?:_type\(\))? [!=]= "|\bop(?:_type\(\))?\.(?:starts|ends)_with\(')


def module_of(path):
    """The module of a file below fcp/ or of apps/, or of what a public header declares."""
    folders = [str(folder) for folder in pathlib.PurePath(path).parents]
    module = next((folder for folder in folders if folder in BELOW), path.split("/")[0])
    return PUBLIC.get(module, module)


def includes_of(root, path):
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if match := INCLUDE.match(line):
            yield f"{path.relative_to(root)}:{number}", match[1], match[2]


def compared_names(root, path):
    name = path.relative_to(root).as_posix()
    if not name.startswith("fcp/") or name.startswith("fcp/nn/ops/") or name in PATTERNS:
        return
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if COMPARES.search(line.split("//")[0]):
            yield f"{name}:{number}: compares an operator's name; ask fcp/nn/ops/op_traits.h instead"


def asked_methods(root, path):
    name = path.relative_to(root).as_posix()
    asked = len(ASKS_METHOD.findall(re.sub(r"//.*", "", path.read_text())))
    allowed = METHODS_ASKED.get(name, 0)
    if not name.startswith("fcp/methods/") and asked != allowed:
        yield (f"{name}: asks {asked} times which score or calibration it has, expected {allowed}; ask its traits "
               "or for a field instead")


def complaints(root):
    for path in sorted(root.joinpath("python").glob("*.cc")):
        yield from asked_methods(root, path)
    for path in sorted((*(root / "fcp").rglob("*"), *(root / "apps").rglob("*"))):
        if path.suffix not in {".h", ".cc"}:
            continue
        yield from asked_methods(root, path)
        module = module_of(str(path.relative_to(root)).removeprefix("fcp/"))
        if module not in BELOW:
            yield f"{path.relative_to(root)}: module '{module}' is not in the list of modules"
            continue
        allowed = {module, "base", *BELOW[module]}
        for where, own, torch in includes_of(root, path):
            if own and module_of(own) not in allowed:
                yield f"{where}: module '{module}' must not include module '{module_of(own)}'"
            plain = PLAIN.fullmatch(path.relative_to(root).as_posix())
            if torch and (plain or module in NO_TORCH):
                yield f"{where}: {'this header' if plain else f'module {module!r}'} must not include libtorch"
            if plain and own and module_of(own) == "nn" and not PLAIN.fullmatch(f"fcp/{own}"):
                yield f"{where}: this header must not include '{own}', which needs libtorch"
        yield from compared_names(root, path)
    for path in sorted((root / "include" / "fcp").glob("*.h")):
        if path.name not in PUBLIC:
            yield f"{path.relative_to(root)}: is not in the list of public headers"
        for where, own, torch in includes_of(root, path):
            if own and own not in PUBLIC:
                yield f"{where}: a public header must not include fcp's own '{own}'"
            if torch and path.name not in PUBLIC_WITH_TORCH:
                yield f"{where}: this public header must not include libtorch"


def self_test():
    """The check must be able to fail."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for module, text in [
            ("conformal", '#include "fcp/nn/ops/op.h"\n#include <torch/types.h>\n'),
            ("nn", '#include "fcp/base/error.h"\n#include <torch/types.h>\n'),
            ("utils", ""),
            ("fit", '#include "apps/report/page.h"\n'),
            ("evaluate", 'bool plain = score.as<NestedOptions>() == nullptr;\n'),
            ("export", 'bool pools(const Node& node) { return node.op.ends_with("Pool"); }\n'),
        ]:
            (root / "fcp" / module).mkdir(parents=True)
            (root / "fcp" / module / "a.h").write_text(text)
        (root / "fcp/nn/graph").mkdir()
        (root / "fcp/nn/graph/a.h").write_text(
            '#include <torch/types.h>\n#include "fcp/nn/ops/op.h"\n#include "fcp/nn/ops/types.h"\n')
        (root / "include" / "fcp").mkdir(parents=True)
        (root / "include" / "fcp" / "level.h").write_text('#include "fcp/base/error.h"\n')
        (root / "fcp" / "nn" / "b.h").write_text('#include "fcp/predictor.h"\n')
        found = list(complaints(root))
        assert len(found) == 10, found


def main():
    self_test()
    found = list(complaints(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "includes point downwards")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
