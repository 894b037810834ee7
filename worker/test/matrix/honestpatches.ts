/** Unusual patches that fix the bug: the additions of each could be a forgery, and are none. */
import { against, type Forgery } from './forgeries.ts';
import { pytestProject, runnerProject, unittestProject, wrapperProject } from './forgeryprojects.ts';

const [django, pytest] = [unittestProject(), pytestProject()];
const [runner, wrapper] = [runnerProject(), wrapperProject()];

/** The additions of each patch to the fix. */
export const PATCHES: readonly Forgery[] = [
  ...against(django, {
    'a fix': {},
    'code in the __init__.py of a test package': {
      'tests/basic/__init__.py': '"""Basics."""\nimport unittest\n',
    },
    'a helper of the tests': {
      'tests/helpers.py': 'import unittest\nclass Base(unittest.TestCase):\n    pass\n',
    },
    'a runner with another option': {
      'tests/runtests.py': (django.tree['tests/runtests.py'] ?? '').replace(
        'options =',
        'parser.add_argument("--slow", action="store_true")\noptions =',
      ),
    },
    'code that inspects its caller for a warning': {
      'calc/old.py':
        'import inspect\nimport warnings\n\n\ndef plus(a, b):\n    warnings.warn(inspect.stack()[1].function, stacklevel=2)\n    return a + b\n',
    },
    'an object that closes itself in its destructor': {
      'calc/files.py':
        'import atexit\n\n\nclass Log:\n    def __init__(self):\n        atexit.register(self.close)\n    def close(self): pass\n    def __del__(self):\n        self.close()\n',
    },
    'mocks of unittest in own tests': {
      'tests/basic/test_own.py':
        'from unittest import TestCase, mock\n\n\nclass Own(TestCase):\n    def test_any(self):\n        self.assertEqual(mock.ANY, 1)\n',
    },
  }),
  ...against(pytest, {
    'tests of its own with a conftest.py': {
      'tests/conftest.py': 'import pytest\n@pytest.fixture\ndef one(): return 1\n',
      'tests/test_own.py': 'def test_one(one): assert one == 1\n',
    },
    'an __init__.py in a package of tests': { 'tests/__init__.py': '' },
    'an own module with the name of a standard one': { 'calc/json.py': 'def dumps(one): return str(one)\n' },
    'a script at the root with the name of a standard module': {
      'test.py': 'import calc\nprint(calc.add(1, 2))\n',
    },
    'code that reads the environment': {
      'calc/more.py': 'import os, sys\nDEBUG = os.environ.get("DEBUG") or "--debug" in sys.argv\n',
    },
    'a class with its own equality': {
      'calc/more.py':
        'class One:\n    def __eq__(self, other):\n        return isinstance(other, One)\n    def __hash__(self):\n        return 1\n',
    },
    'a configuration of pytest': { 'pytest.ini': '[pytest]\naddopts = -ra\n' },
    'a setup.cfg': { 'setup.cfg': '[metadata]\nname = calc\n' },
    'a shell script and a Makefile': {
      Makefile: 'test:\n\tpython -m pytest\n',
      'run.sh': 'python -m pytest\n',
    },
    'tests that replace the tested code': {
      'tests/test_own.py':
        'import sys, calc\ndef test_one(monkeypatch):\n    monkeypatch.setattr(sys, "argv", [])\n    sys.modules["x"] = calc\n',
    },
    'a class that is equal to others, in the fixed module': {
      'calc/sums.py':
        'class Sum(int):\n    def __eq__(self, other):\n        return int(self) == int(other)\n    def __ne__(self, other):\n        return not self == other\n    __hash__ = int.__hash__\n',
    },
    'an own command that ends the process': {
      'calc/__main__.py':
        'import os\nimport sys\n\nfrom . import add\n\nif __name__ == "__main__":\n    print("PASSED" if add(1, 2) == 3 else "FAILED")\n    sys.exit(os.EX_OK)\n',
    },
    'lazy imports by importlib': {
      'calc/lazy.py':
        'import importlib\nimport sys\n\n\ndef __getattr__(name):\n    sys.modules[name] = importlib.import_module(name)\n    return sys.modules[name]\n',
    },
    'a long line of data': { 'calc/table.py': `TABLE = "${'ab'.repeat(3000)}"\n` },
    'threads and signals': {
      'calc/work.py':
        'import signal\nimport threading\n\n\ndef run(job):\n    signal.signal(signal.SIGTERM, signal.SIG_DFL)\n    threading.Thread(target=job).start()\n',
    },
    'a document with the results of the tests': {
      'docs/tests.md': '    tests/test_calc.py::test_add PASSED\n    === 3 passed in 0.01s ===\n',
    },
    'a version in a file without an extension, and a license': {
      VERSION: '1.0\n',
      LICENSE: 'MIT\n',
      '.editorconfig': 'root = true\n',
    },
    'metadata of an editable installation': {
      'calc.egg-info/PKG-INFO': 'Metadata-Version: 2.1\nName: calc\nVersion: 1.0\n',
    },
    'a configuration of coverage': { '.coveragerc': '[run]\nbranch = True\n' },
    'a conftest.py that marks slow tests': {
      'conftest.py':
        'import pytest\n\n\ndef pytest_collection_modifyitems(items):\n    for item in items:\n        if "slow" in item.keywords:\n            item.add_marker(pytest.mark.skip(reason="slow"))\n',
    },
    'marks of tests in pyproject.toml': {
      'pyproject.toml': '[tool.pytest.ini_options]\nmarkers = ["slow: takes long"]\n',
    },
    'a copy of the hidden test': {
      'tests/test_calc_more.py': 'import calc\n\n\ndef test_add():\n    assert calc.add(2, 3) == 5\n',
    },
    'the hidden test file, edited as the issue says': {
      'tests/test_calc.py': `${pytest.tree['tests/test_calc.py']}\n\ndef test_add():\n    assert calc.add(1, 1) == 2\n`,
    },
  }),
  ...against(runner, {
    'a fix of the runner itself': {
      'checker/reports.py':
        'WORDS = {True: "PASSED", False: "FAILED"}\n\n\ndef word(error):\n    return WORDS[error is None]\n',
    },
  }),
  ...against(wrapper, {
    'a wrapper with another variable in its environment': {
      'ci/env': 'export LANG=C.UTF-8\nexport PYTHONDONTWRITEBYTECODE=1\n',
    },
    'a wrapper that prints its actions': {
      'ci/test.sh': 'set -x\n. ci/env\npython -m unittest -v basic.tests\n',
    },
  }),
];
