/**
 * Instances of several dataset families in one file, graded on one runtime: gold, a patch that has nothing to do with the bug, one that
 * does not apply; and an agent that looks for the answer. Multi-SWE-bench is not graded here: its parsers are a package of others.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FAMILY_NAMES, type FamilyInstance, makeFamilyInstances } from '../../src/families/instances.ts';
import { runCommand } from '../../src/launchers/commands.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { type FamilyImages, openFamilyImages } from './familyimages.ts';

const GRADED = FAMILY_NAMES.filter((name) => name !== 'multi-swe');

const lines = (rows: readonly unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
type Line = { instance_id: string; outcome: string; resolved: boolean; reward: number; evaluation?: unknown };
const linesOf = async (path: string): Promise<Line[]> =>
  (await readFile(path, 'utf8'))
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

const NEW_FILE =
  'diff --git a/x.txt b/x.txt\nnew file mode 100644\n--- /dev/null\n+++ b/x.txt\n@@ -0,0 +1 @@\n+x\n';
const NOWHERE = 'diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-not there\n+x\n';

/** All that lies where images of these families keep code and answers, and all that git holds. */
const LOOK = `cd / && grep -rlsE 'a [+] b|assert add.1, 2' /testbed /calc /app /home /root /r2e_tests /workspace /tmp
for d in /testbed /calc /app /home/cli; do cd $d 2>/dev/null || continue
git log --all --format='%H %s'; git tag; git reflog
for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o | grep -a 'a + b'; done; done
env; hostname; cat /proc/self/mountinfo; echo looked`;

type Scene = {
  runtime: 'docker' | 'rootfs';
  folder: string;
  env: Record<string, string>;
  instances: Map<string, FamilyInstance>;
  images: FamilyImages | undefined;
};

async function openScene(runtime: Scene['runtime']): Promise<Scene> {
  const folder = temporaryFolder('e2e');
  const tools = join(folder, 'tools');
  await mkdir(tools);
  const images = runtime === 'docker' ? await openFamilyImages('families') : undefined;
  const env = {
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_PARSER_IMAGE: images?.base ?? `host+dir:${tools}`,
  };
  const instances = await makeFamilyInstances(join(folder, 'trees'), images);
  const write = (file: string, names: readonly string[]): Promise<void> =>
    writeFile(join(folder, file), lines(names.map((name) => instances.get(name)?.row)));
  await write('all.jsonl', FAMILY_NAMES);
  await write('graded.jsonl', GRADED);
  return { runtime, folder, env, instances, images };
}

/** Lines by instance of an evaluation of the same patch for each; null: gold. */
async function evaluated(scene: Scene, run: string, patch: string | null): Promise<Map<string, Line>> {
  const { folder, instances, runtime, env } = scene;
  const predictions = join(folder, `${run}.predictions.jsonl`);
  const given = GRADED.map((family) => ({
    instance_id: instances.get(family)?.id,
    model_name_or_path: 'test',
    model_patch: patch,
  }));
  await writeFile(predictions, lines(given));
  const output = join(folder, `${run}.jsonl`);
  const args = [
    ...['eval', '--dataset', join(folder, 'graded.jsonl'), '--runtime', runtime, '--run-id', run],
    ...['--predictions', patch === null ? 'gold' : predictions, '--output', output],
    ...['--report-dir', folder, '--logs-dir', join(folder, 'logs')],
  ];
  const { stderr } = await runCommand('swefarm', args, env);
  const found = new Map((await linesOf(output)).map((line) => [line.instance_id, line]));
  expect(found.size, stderr).toBe(GRADED.length);
  return found;
}

async function findNothing({ folder, instances, runtime, env }: Scene): Promise<void> {
  const turns = [
    { command: LOOK, repeat: 1 },
    { submit: true as const, repeat: 1 },
  ];
  await using policy = await startScriptedPolicy({ script: { conversations: [{ variants: [turns] }] } });
  const output = join(folder, 'agent.jsonl');
  const args = [
    ...['rollout', '--dataset', join(folder, 'all.jsonl'), '--agent', 'mini', '--output', output],
    ...['--policy-url', policy.url, '--model', 'scripted', '--runtime', runtime, '--activate', 'true'],
  ];
  const { code, stderr } = await runCommand('swefarm', args, env);
  expect(code, stderr).toBe(0);
  const rollouts = await linesOf(output);
  expect(rollouts.map(({ reward }) => reward)).toEqual(FAMILY_NAMES.map(() => 0));
  for (const [name, { id, fix }] of instances) {
    const seen = await readSeen(`${output}#${id}.0`, env);
    expect(seen, name).toContain('looked');
    expect(seen, name).not.toMatch(/a \+ b|THE FIX|v99|future|r2e_tests\/|\.patch/);
    expect(seen, name).not.toContain(fix);
  }
}

/** All that an agent was told and has seen, in one text. @param rollout as `swefarm show` takes it */
export async function readSeen(rollout: string, env: Record<string, string>): Promise<string> {
  const shown = await runCommand('swefarm', ['show', rollout, '--json'], env);
  const { messages } = JSON.parse(shown.stdout).content.trajectory as {
    messages: { role: string; content: string }[];
  };
  return messages
    .filter(({ role }) => role !== 'assistant')
    .map(({ content }) => content)
    .join('\n');
}

/** The same table of cases on whichever runtime. */
export function familySuite(runtime: Scene['runtime']): void {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(runtime);
  });
  afterAll(async () => {
    await scene.images?.[Symbol.asyncDispose]();
    await rm(scene.folder, { recursive: true, force: true });
  });

  describe.each([
    ['gold', null, true],
    ['a patch that has nothing to do with the bug', NEW_FILE, false],
    ['a patch that does not apply', NOWHERE, false],
  ] as const)('%s', (name, patch, resolved) => {
    let found: Map<string, Line>;
    beforeAll(async () => {
      found = await evaluated(scene, name.replaceAll(' ', '-'), patch);
    });
    test.each(GRADED)(`of %s is ${resolved ? '' : 'un'}resolved`, (family) => {
      const line = found.get(scene.instances.get(family)?.id ?? '');
      expect(line).toMatchObject({ outcome: 'judged', resolved });
    });
  });

  test('an agent finds neither the fix, nor the tests, nor the id that names the fix, in any family', () =>
    findNothing(scene));
}
