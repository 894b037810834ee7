/** Makes small instances in the forms of SWE-Gym, SWE-bench and SWE-smith for docs/workflows.md, and a script for the model. */
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { RUNNER } from '../../src/families/instances.ts';
import type { ScriptInput, TurnInput } from '../../src/policy/script.ts';
import { commitTree, type Git, headOf, writeTree } from '../../src/repository.ts';

const BUG = 'def add(a, b):\n    return a - b\n';
const FIXED = 'def add(a, b):\n    return a + b\n';
const TESTS =
  'from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\ndef test_zero():\n    assert add(0, 0) == 0\n';
const FAIL_TO_PASS = ['tests/test_calc.py::test_add'];
const PASS_TO_PASS = ['tests/test_calc.py::test_zero'];

/** Makes a tree on top of the host's system, with a conda activate script as in the images of these families. */
async function imageTree(folder: string, calc: string): Promise<{ testbed: string; git: Git }> {
  const testbed = join(folder, 'testbed');
  await writeTree(testbed, { 'calc.py': calc, 'tests/test_calc.py': TESTS });
  const conda = join(folder, 'opt/miniconda3');
  await writeTree(conda, { 'envs/testbed/bin/pytest': RUNNER });
  await mkdir(join(conda, 'bin'), { recursive: true });
  const activate = new URL('../../src/examples/activate.sh', import.meta.url);
  await cp(activate, join(conda, 'bin/activate'));
  return { testbed, git: commitTree(testbed) };
}

/** Returns the diff from the committed calc.py to another text. */
async function diff({ testbed, git }: { testbed: string; git: Git }, to: string): Promise<string> {
  await writeTree(testbed, { 'calc.py': to });
  const text = git`diff`;
  git`checkout -q -- .`;
  return text;
}

/** Makes a row whose tree has the bug. */
export async function gymRow(folder: string, repo: string, instance_id: string) {
  const image = join(folder, instance_id);
  const tree = await imageTree(image, BUG);
  return {
    ...{ instance_id, repo, base_commit: headOf(tree.git), version: '1.0' },
    ...{ patch: await diff(tree, FIXED), test_patch: '', FAIL_TO_PASS, PASS_TO_PASS },
    ...{ test_cmd: 'pytest -rA tests/test_calc.py', install: 'true', log_parser: 'parse_log_pytest' },
    ...{ problem_statement: `add subtracts (${instance_id}).`, license: 'MIT', image: `host+dir:${image}` },
  };
}

/** Makes a row whose patch adds the bug, in the tree of a SWE-smith project. */
export async function smithRow(folder: string, project: string, name: string) {
  const image = join(folder, name);
  const tree = await imageTree(image, FIXED);
  const instance_id = `${project}.${name}`;
  return {
    ...{ instance_id, repo: `swesmith/${project}`, patch: await diff(tree, BUG) },
    ...{ FAIL_TO_PASS, PASS_TO_PASS, image_name: `host+dir:${image}` },
    problem_statement: `add subtracts (${instance_id}).`,
  };
}

/** Returns turns that replace the buggy line and submit; null: submit an untouched tree. @param thought text before the first command */
const attempt = (line: string | null, thought = 'I mend the sum.'): TurnInput[] => [
  line === null
    ? { command: 'cat calc.py', thought }
    : { command: `sed -i 's/return a - b/return ${line}/' calc.py`, thought },
  { submit: true },
];

/** A text that exceeds the token limit of the workflow. */
const LONG = 'and so on '.repeat(12_000);

/** The model's turns for each instance, by the rollout's index in its group. */
export const ATTEMPTS: Readonly<Record<string, readonly TurnInput[][]>> = {
  'getmoto__moto-1001': [attempt('a + b'), attempt('b + a'), attempt('sum((a, b))'), attempt('a * b')],
  'python__mypy-1002': [attempt('a + b', LONG), attempt('a + b'), attempt('a * b'), attempt(null)],
  'pallets__flask-1': [
    ...[attempt('a + b  # p 0.9'), attempt('a * b  # p 0.6')],
    ...[attempt('a * b  # p 0.3'), attempt('b  # p 0.1')],
  ],
  'psf__requests-2': [
    ...[attempt('a * b  # p 0.9'), attempt('a + b  # p 0.8')],
    ...[attempt('b + a  # p 0.7'), attempt('b  # p 0.1')],
  ],
  'pylint-dev__pylint-3': [
    ...[attempt('a * b  # p 0.9'), attempt('b  # p 0.8')],
    ...[attempt('a  # p 0.7'), attempt('b * a  # p 0.1')],
  ],
};

/** The turns of the expert for SWE-smith's instances: the first attempt resolves, the second does not. */
const EXPERT = [attempt('a + b'), attempt('a * b')];

export const script = (): ScriptInput => ({
  conversations: [
    ...Object.entries(ATTEMPTS).map(([instance, variants]) => ({ instance, variants: [...variants] })),
    { variants: EXPERT },
  ],
});
