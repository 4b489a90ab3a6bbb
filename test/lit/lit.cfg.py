# Configuration of the lit tests: IR in, checked text out.
import os

import lit.formats

config.name = "cortiq"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.cortiq_lit_obj
config.excludes = ["CMakeLists.txt", "Inputs"]
config.environment["PATH"] = os.pathsep.join([config.cortiq_bin, config.llvm_tools, os.environ.get("PATH", "")])
if os.environ.get("CORTIQ_FIXTURES", config.cortiq_fixtures):
    config.environment["CORTIQ_FIXTURES"] = os.environ.get("CORTIQ_FIXTURES", config.cortiq_fixtures)
    config.available_features.add("fixtures")
