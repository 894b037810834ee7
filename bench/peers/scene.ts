/** Shared by all peers: one image, one task under many ids, the same answers of the model, and a patch that resolves the task. */
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Instance } from '@swefarm/shared';
import { conversation, run, writeTree } from '@swefarm/testkit';
import { COMMANDS } from '../commands.ts';
import { type BenchEnvironment, openEnvironment, type Policy, startPolicy } from '../farm.ts';
import type { Subject } from '../subject.ts';

/** swebench accepts local images only under the names that it generates. */
export const NAMESPACE = 'swefarm-peers';
/** A repository and version in swebench's tables whose commands need no network. The rows of the benchmark name them. */
const KNOWN = { repo: 'pytest-dev/pytest', version: '7.4' };

export type Scene = {
  environment: BenchEnvironment;
  policy: Policy;
  /** The instance for the farm. */
  instance: Instance;
  folder: string;
  /** Rows of SWE-bench's form for the first `count` ids. */
  rows(count: number): Row[];
};

export type Row = Record<string, unknown> & { instance_id: string };

/** Files that SWE-bench's commands need and the small image lacks. The programs run the tests with the image's python3. */
const CONDA = 'opt/miniconda3/etc/profile.d/conda.sh';
const ADDED: Readonly<Record<string, string>> = {
  [CONDA]: 'conda() { :; }\n',
  'usr/bin/python': '#!/bin/sh\ncase "$*" in "-m pip"*) exit 0 ;; esac\nexec python3 "$@"\n',
  'usr/bin/pytest': '#!/bin/sh\nfor last; do :; done\nexec python3 -B "$last"\n',
};

const GOLD = [
  'diff --git a/calc/ops.py b/calc/ops.py',
  '--- a/calc/ops.py',
  '+++ b/calc/ops.py',
  '@@ -1,2 +1,2 @@',
  ' def add(a, b):',
  '-    return a - b',
  '+    return a + b',
  '',
].join('\n');

/** The last answer submits as mini-swe-agent's prompt asks. The farm accepts the same command. */
const SUBMIT = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff';

const SCRIPT = conversation([...COMMANDS, SUBMIT].map((command) => ({ thought: 'I look.', command })));

/** Opens the scene. `most`: number of ids. Disposal removes its images. */
export async function openScene(subject: Subject, most: number): Promise<Scene & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const environment = stack.use(await openEnvironment());
  const policy = stack.use(await startPolicy(environment, 'peers', SCRIPT, ['--tokens', 'off']));
  const folder = join(environment.folder, 'peers');
  const image = await buildImage(folder, subject);
  const ids = Array.from({ length: most }, (_, at) => `bench__calc-${at + 1}`);
  const tags = [image, ...ids.map(harnessImage)];
  for (const tag of tags.slice(1)) await run('docker', ['tag', image, tag]);
  stack.defer(async () => void (await run('docker', ['rmi', '-f', ...tags])));
  const all = stack.move();
  return {
    ...{ environment, policy, folder, instance: { ...subject.instance, image } },
    rows: (count) => ids.slice(0, count).map((id) => rowOf(id, subject.instance, image)),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Returns swebench 4.1.0's name of an instance's image in a namespace. */
const harnessImage = (id: string): string =>
  `${NAMESPACE}/sweb.eval.x86_64.${id.replace('__', '_1776_')}:latest`;

async function buildImage(folder: string, { image }: Subject): Promise<string> {
  const context = join(folder, 'image');
  await writeTree(join(context, 'root'), ADDED);
  for (const name of Object.keys(ADDED)) await chmod(join(context, 'root', name), 0o755);
  await writeFile(join(context, 'Dockerfile'), `FROM ${image}\nCOPY root /\nWORKDIR /testbed\n`);
  const tag = `${NAMESPACE}/calc:${process.pid}`;
  await run('docker', ['build', '-q', '-t', tag, context], { env: { ...process.env, DOCKER_BUILDKIT: '0' } });
  return tag;
}

function rowOf(id: string, instance: Instance, image: string): Row {
  const { base_commit, problem_statement, test_patch, FAIL_TO_PASS, PASS_TO_PASS } = instance;
  return {
    ...{ instance_id: id, ...KNOWN, base_commit, environment_setup_commit: base_commit },
    ...{ problem_statement, hints_text: '', created_at: '2024-01-01T00:00:00Z', patch: GOLD, test_patch },
    ...{ FAIL_TO_PASS: JSON.stringify(FAIL_TO_PASS), PASS_TO_PASS: JSON.stringify(PASS_TO_PASS) },
    ...{ image_name: image, docker_image: image },
  };
}
