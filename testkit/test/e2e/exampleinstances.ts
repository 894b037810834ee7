/** Makes the example `parse` in the exact form of families whose images have a conda environment: SWE-rebench V1, SWE-Lego, Scale-SWE. */
import { execFileSync } from 'node:child_process';
import { cp, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { buildExamples } from '../../src/examples/build.ts';
import { exampleImage } from '../../src/families/images.ts';
import { longestLine } from './predictions.ts';
import { EXAMPLE_ID } from './scripts.ts';

export type ExampleInstance = {
  id: string;
  row: Record<string, unknown>;
  patch: string;
  /** Texts that the agent must not find: a line of the fix, a test of the fix, and the commit of the fix. */
  answers: string[];
};

type Given = Awaited<ReturnType<typeof buildExamples>>['rows'][number];
type Form = {
  id: string;
  workdir: string;
  /** PATH with the environment's programs, for images that do not activate the environment. */
  path?: string;
  row(given: Given, image: string, fix: string): Record<string, unknown>;
};

const PYTEST = 'pytest --no-header -rA --tb=line -p no:cacheprovider';
const INSTALL_CONFIG = (given: Given) => ({
  python: '3.9',
  install: given.install,
  packages: 'requirements.txt',
  pip_packages: ['pytest'],
  pre_install: null,
  reqs_path: null,
  env_vars: null,
  log_parser: 'parse_log_pytest',
  test_cmd: PYTEST,
});

/** Returns SWE-bench's columns, without the columns of our examples for image and test command. */
function swebenchColumns(given: Given, id: string) {
  const { family: _f, image: _i, test_cmd: _c, log_parser: _p, install: _n, ...row } = given;
  return { ...row, instance_id: id };
}

const FORMS: Readonly<Record<string, Form>> = {
  'swe-rebench': {
    id: 'r1chardj0n3s__parse-71',
    workdir: 'testbed',
    row: (given, image) => ({
      ...swebenchColumns(given, 'r1chardj0n3s__parse-71'),
      install_config: INSTALL_CONFIG(given),
      docker_image: 'swerebench/sweb.eval.x86_64.r1chardj0n3s_1776_parse-71',
      image,
      FAIL_TO_FAIL: [],
      PASS_TO_FAIL: [],
    }),
  },
  'swe-lego': {
    id: 'r1chardj0n3s__parse-72',
    workdir: 'testbed',
    row: (given, image) => ({
      ...swebenchColumns(given, 'r1chardj0n3s__parse-72'),
      image_name: 'jierun/sweb.eval.x86_64.r1chardj0n3s_1776_parse-72',
      image,
      install_config: INSTALL_CONFIG(given),
      test_cmd: `${PYTEST} tests/test_parse.py`,
      messages: [],
    }),
  },
  'scale-swe': {
    id: 'r1chardj0n3s_parse_pr73',
    workdir: 'workspace/parse',
    path: '/opt/miniconda3/envs/testbed/bin:/usr/local/bin:/usr/bin:/bin',
    row: (given, image, fix) => ({
      instance_id: 'r1chardj0n3s_parse_pr73',
      user: 'r1chardj0n3s',
      repo: 'parse',
      language: 'python',
      workdir: '/workspace/parse',
      image_url: image,
      patch: given.patch,
      pr_commit: fix,
      parent_commit: given.base_commit,
      problem_statement: given.problem_statement,
      f2p_patch: given.test_patch,
      f2p_script: '',
      FAIL_TO_PASS: JSON.stringify(given.FAIL_TO_PASS),
      PASS_TO_PASS: JSON.stringify(given.PASS_TO_PASS),
      pre_commands: 'git checkout -q -b scaleswe\\n',
    }),
  },
};

export const EXAMPLE_FAMILIES = Object.keys(FORMS);

/** Makes one instance for each family, by the family's name. Docker images have names below `localhost/TAG/`. */
export async function makeExampleInstances(
  folder: string,
  runtime: 'docker' | 'rootfs',
  { tag = 'forms', families = EXAMPLE_FAMILIES }: { tag?: string; families?: readonly string[] } = {},
): Promise<Map<string, ExampleInstance>> {
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: runtime, out: join(folder, 'built') });
  const [example] = built.examples;
  const [given] = built.rows;
  if (!example || !given) throw new Error(`${EXAMPLE_ID} was not built`);
  const made = new Map<string, ExampleInstance>();
  for (const name of families) {
    const form = FORMS[name];
    if (!form) throw new Error(`${name}: no such form`);
    const target = join(folder, name);
    const repository = join(target, form.workdir);
    await mkdir(dirname(repository), { recursive: true });
    await cp(join(example.tree.path, 'testbed'), repository, { recursive: true });
    const fix = addLaterHistory(repository, given);
    const image = exampleImage({ ...example, image: given.image }, target, {
      runtime,
      name: `localhost/${tag}/${name}:1`,
      inside: form.workdir.split('/', 1)[0] ?? '',
      ...(form.path === undefined ? {} : { path: form.path }),
    });
    made.set(name, {
      id: form.id,
      row: form.row(given, image, fix),
      patch: given.patch,
      answers: [longestLine(given.patch, '+'), 'test_hyphen_inside_field_name', fix, 'THE FIX', 'v99'],
    });
  }
  return made;
}

/** Adds the fix as a later commit with a branch and a tag, as images of these families have it. Returns the commit id. */
function addLaterHistory(repository: string, { patch, test_patch }: Given): string {
  const git = (args: string[], input = ''): string =>
    execFileSync('git', ['-c', 'user.name=n', '-c', 'user.email=e@x', '-C', repository, ...args], {
      encoding: 'utf8',
      input,
      env: { ...process.env, GIT_INDEX_FILE: join(repository, '.git/later') },
    }).trim();
  git(['read-tree', 'HEAD']);
  git(['apply', '--cached', '-'], patch);
  git(['apply', '--cached', '-'], test_patch);
  const commit = git(['commit-tree', git(['write-tree']), '-p', 'HEAD', '-m', 'THE FIX']);
  git(['branch', 'future', commit]);
  git(['tag', 'v99', commit]);
  execFileSync('rm', [join(repository, '.git/later')]);
  return commit;
}
