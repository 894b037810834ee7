/** Makes small instances in the exact form of dataset families: rows, and trees with the layout of the families' images. */
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { commitTree, headOf, writeTree } from '../repository.ts';

const BUG = 'def add(a, b):\n    return a - b\n';
const FIXED = 'def add(a, b):\n    return a + b\n';
const TESTS = 'from calc import add\n\n\ndef test_zero():\n    assert add(0, 0) == 0\n';
const NEW_TEST = '\n\ndef test_add():\n    assert add(1, 2) == 3\n';
/** Replaces pytest, which the host lacks: prints a line for each test, like `pytest -rA` or `pytest --verbose`. */
export const RUNNER = `#!/usr/bin/env python3
import importlib.util, os, sys

sys.path.insert(0, ".")
verbose = "--verbose" in sys.argv
words = []
print("============================= test session starts ==============================")
named = [one for one in sys.argv[1:] if one.endswith(".py")]
for path in named or [f"tests/{name}" for name in sorted(os.listdir("tests")) if name.startswith("test_")]:
    spec = importlib.util.spec_from_file_location("tests", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in sorted(one for one in dir(module) if one.startswith("test_")):
        try:
            getattr(module, name)()
            word = "PASSED"
        except AssertionError:
            word = "FAILED"
        words.append(word)
        print(f"{path}::{name} {word}" if verbose else f"{word} {path}::{name}")
counts = [(words.count(word), word.lower()) for word in ("FAILED", "PASSED") if word in words]
print(f"========================= {', '.join(f'{n} {word}' for n, word in counts)} in 0.01s =========================")
sys.exit(1 if "FAILED" in words else 0)
`;

type Repository = { base: string; fix: string; patch: string; testPatch: string };

/** A repository at the bug, whose later history contains the fix and its test, as the images of most families have it. */
async function repository(path: string): Promise<Repository> {
  const files = { 'calc.py': BUG, 'run.py': RUNNER, 'tests/test_calc.py': TESTS };
  await writeTree(path, files);
  const git = commitTree(path);
  const base = headOf(git);
  await writeTree(path, { 'calc.py': FIXED, 'tests/test_calc.py': TESTS + NEW_TEST });
  const [patch, testPatch] = [git`diff -- calc.py`, git`diff -- tests`];
  git`commit -qam ${'THE FIX'}`;
  const fix = headOf(git);
  git`branch future`;
  git`tag v99`;
  git`reset -q --hard ${base}`;
  return { base, fix, patch, testPatch };
}

export type FamilyInstance = {
  id: string;
  row: Record<string, unknown>;
  gold: string;
  /** Data that the agent must not find. The commit of the fix represents all data that reveals the fix. */
  fix: string;
};

type Maker = (tree: string, image: string) => Promise<FamilyInstance>;

const common = (id: string, image: string, { base, patch, testPatch }: Repository) => ({
  instance_id: id,
  repo: 'acme/calc',
  base_commit: base,
  patch,
  test_patch: testPatch,
  problem_statement: 'add subtracts.',
  FAIL_TO_PASS: ['tests/test_calc.py::test_add'],
  PASS_TO_PASS: ['tests/test_calc.py::test_zero'],
  image,
});

const r2e: Maker = async (tree, image) => {
  const made = await repository(join(tree, 'testbed'));
  await mkdir(join(tree, 'testbed/.venv/bin'), { recursive: true });
  await symlink('/usr/bin/python3', join(tree, 'testbed/.venv/bin/python'));
  await writeTree(tree, {
    'r2e_tests/test_1.py': `from calc import add\n${NEW_TEST}\n\ndef test_known():\n    assert False\n`,
    'testbed/run_tests.sh':
      'echo "=== short test summary info ==="\n.venv/bin/python run.py r2e_tests/test_1.py\n',
  });
  const line = (type: string, content: string) => ({ type, content });
  const commit = {
    file_diffs: [
      {
        old_file_content: BUG,
        new_file_content: FIXED,
        header: { file: { path: 'calc.py' }, misc_line: null },
        index_line: { old_commit_hash: '1111111', new_commit_hash: '2222222', mode: '100644' },
        is_binary_file: false,
        minus_file: { path: 'a/calc.py' },
        plus_file: { path: 'b/calc.py' },
        hunks: [
          {
            descriptor: {
              old_range: { start: 1, length: 2 },
              new_range: { start: 1, length: 2 },
              section: '',
            },
            line_group: {
              all_lines: [
                line('context', 'def add(a, b):'),
                line('deleted', '    return a - b'),
                line('added', '    return a + b'),
              ],
            },
          },
        ],
      },
    ],
    old_commit_hash: made.base,
    new_commit_hash: made.fix,
  };
  const row = {
    repo_name: 'calc',
    docker_image: image,
    commit_hash: made.fix,
    parsed_commit_content: JSON.stringify(commit),
    expected_output_json: JSON.stringify({ test_add: 'PASSED', test_known: 'FAILED' }),
    problem_statement: '[ISSUE]add subtracts.[/ISSUE]',
  };
  return { id: `calc-${made.fix}`, row, gold: made.patch, fix: made.fix };
};

/** The same image; the row is NeMo Gym's, which names the tests in lists. */
const r2eOfNemo: Maker = async (tree, image) => {
  const made = await r2e(tree, image);
  const { commit_hash, docker_image } = made.row;
  const id = `acme__calc-${made.fix}`;
  await writeTree(tree, {
    'r2e_tests/test_1.py': `from calc import add\n${NEW_TEST}\n\ndef test_zero():\n    assert add(0, 0) == 0\n\n\ndef test_unlisted():\n    assert False\n`,
  });
  const instance_dict = JSON.stringify({
    ...{ repo: 'acme/calc', commit_hash, docker_image },
    FAIL_TO_PASS: ['r2e_tests/test_1.py::test_add'],
    PASS_TO_PASS: ['r2e_tests/test_1.py::test_zero'],
  });
  const metadata = {
    ...{ instance_id: id, base_commit: 'HEAD', dataset_name: 'R2E-Gym/R2E-Gym-Subset', split: 'train' },
    ...{ problem_statement: 'add subtracts.', golden_patch: made.gold, instance_dict },
  };
  return { ...made, id, row: { responses_create_params: { input: [], metadata } } };
};

const v2: Maker = async (tree, image) => {
  const made = await repository(join(tree, 'calc'));
  const install_config = {
    base_image_name: 'python:latest',
    install: [],
    log_parser: 'parse_log_pytest',
    test_cmd: ['python3 run.py tests/test_calc.py'],
  };
  const id = 'acme__calc-v2';
  const row = { ...common(id, image, made), language: 'python', install_config };
  return { id, row, gold: made.patch, fix: made.fix };
};

const live =
  (id: string, columns: Record<string, unknown>): Maker =>
  async (tree, image) => {
    const made = await repository(join(tree, 'testbed'));
    return { id, row: { ...common(id, image, made), ...columns }, gold: made.patch, fix: made.fix };
  };

const LIVE_PARSER = `def parser(log):
    words = {"PASSED": "pass", "FAILED": "fail"}
    return {line.split()[1]: words[line.split()[0]] for line in log.splitlines() if "::" in line}
`;

const pro: Maker = async (tree, image) => {
  const made = await repository(join(tree, 'app'));
  const id = `instance_acme__calc-${made.fix}`;
  const { FAIL_TO_PASS: _f, PASS_TO_PASS: _p, ...columns } = common(id, image, made);
  const row = {
    ...columns,
    requirements: 'The sum.',
    interface: 'None.',
    fail_to_pass: "['tests/test_calc.py::test_add']",
    pass_to_pass: '["tests/test_calc.py::test_zero"]',
    selected_test_files_to_run: "['tests/test_calc.py']",
    before_repo_set_cmd: `git reset --hard ${made.base}\ngit checkout ${made.fix} -- tests/test_calc.py`,
    'run_script.sh': 'python3 run.py $1\n',
    'parser.py': `import json, sys
tests = [line.split() for line in open(sys.argv[1]) if "::" in line]
json.dump({"tests": [{"name": t[1], "status": t[0]} for t in tests]}, open(sys.argv[3], "w"))
`,
  };
  return { id, row, gold: made.patch, fix: made.fix };
};

/** The same image; the row is NeMo Gym's, with its own names for the programs. */
const nvInternal: Maker = async (tree, image) => {
  const made = await pro(tree, image);
  const id = 'acme__calc-internal';
  const { 'parser.py': parser, problem_statement, base_commit, ...row } = made.row;
  const instance_dict = JSON.stringify({ ...row, instance_id: id, base_commit, 'parsing_script.py': parser });
  const metadata = {
    ...{ instance_id: id, base_commit, dataset_name: 'nv-internal-1', split: 'train', problem_statement },
    ...{ golden_patch: made.gold, instance_dict },
  };
  return { ...made, id, row: { responses_create_params: { input: [], metadata } } };
};

const openSwe: Maker = async (tree, image) => {
  const made = await repository(join(tree, 'testbed'));
  const id = 'acme__calc-open';
  const eval_script =
    '#!/bin/bash\ncd /testbed\npython3 -c "from calc import add; assert add(1, 2) == 3"\necho "OPENSWE_EXIT_CODE=$?"\n';
  return { id, row: { ...common(id, image, made), eval_script }, gold: made.patch, fix: made.fix };
};

/** The runner's lines as Go's runner prints them. */
const AS_GO = `python3 run.py tests/test_calc.py |
  sed -E 's/^(PASS|FAIL)ED [^:]*::([^ ]+).*/--- \\1: \\2 (0.00s)/'
`;

const multi: Maker = async (tree, image) => {
  // The package of upstream has a parser for this project.
  const made = await repository(join(tree, 'home/cli'));
  await writeTree(tree, {
    'home/fix.patch': made.patch,
    'home/test.patch': made.testPatch,
    'home/run.sh': `cd /home/cli\n${AS_GO}`,
    'home/fix-run.sh': `set -e\ncd /home/cli\ngit apply /home/test.patch /home/fix.patch\n${AS_GO}`,
  });
  const passed = { run: 'PASS', test: 'PASS', fix: 'PASS' };
  const row = {
    ...{ org: 'cli', repo: 'cli', number: 7, lang: 'go', image },
    base: { label: 'cli:trunk', ref: 'trunk', sha: made.base },
    resolved_issues: [{ number: 5, title: 'add subtracts.', body: '' }],
    fix_patch: made.patch,
    test_patch: made.testPatch,
    p2p_tests: { test_zero: passed },
    n2p_tests: { test_add: { run: 'NONE', test: 'NONE', fix: 'PASS' } },
  };
  return { id: 'cli__cli-7', row, gold: made.patch, fix: made.fix };
};

const MAKERS: Readonly<Record<string, Maker>> = {
  'r2e-gym': r2e,
  'r2e-gym as NeMo Gym posts it': r2eOfNemo,
  'swe-rebench-v2': v2,
  'swe-bench-live with pytest': live('acme__calc-live', {
    test_cmds: ['python3 run.py tests/test_calc.py'],
    log_parser: 'pytest',
  }),
  'swe-bench-live with its own parser': live('acme__calc-parsed', {
    test_cmds: ['python3 run.py tests/test_calc.py >out.txt'],
    print_cmds: ['cat out.txt'],
    log_parser: LIVE_PARSER,
  }),
  'swe-bench-pro': pro,
  'nv-internal-1': nvInternal,
  'open-swe': openSwe,
  'multi-swe': multi,
};

export const FAMILY_NAMES = Object.keys(MAKERS);

/** Makes images from trees. */
export type ImageMaker = {
  /** The image's name, before the tree is filled. */
  nameOf(family: string, tree: string): string;
  /** Called when the tree is complete. */
  make(name: string, tree: string): Promise<void>;
};

/** A tree above the host's own system. */
const ABOVE_HOST: ImageMaker = { nameOf: (_, tree) => `host+dir:${tree}`, make: async () => undefined };

/** One instance a family, their trees in `folder`. */
export async function makeFamilyInstances(
  folder: string,
  images: ImageMaker = ABOVE_HOST,
  families: readonly string[] = FAMILY_NAMES,
): Promise<Map<string, FamilyInstance>> {
  const made = new Map<string, FamilyInstance>();
  for (const family of families) {
    const make = MAKERS[family];
    if (!make) throw new Error(`${family}: no such family`);
    const slug = family.replaceAll(' ', '-');
    const tree = join(folder, slug);
    await mkdir(tree, { recursive: true });
    const name = images.nameOf(slug, tree);
    made.set(family, await make(tree, name));
    await images.make(name, tree);
  }
  return made;
}
