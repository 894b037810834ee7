/** Tests made instances of SWE-rebench V1, SWE-Lego and Scale-SWE on one runtime. */

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { shellQuoted } from '@swefarm/shared';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { words } from '../../src/launchers/commands.ts';
import { writeLines } from '../../src/lines.ts';
import { conversation, running } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { EXAMPLE_FAMILIES, type ExampleInstance, makeExampleInstances } from './exampleinstances.ts';
import { NEW_FILE, predictionsOf } from './predictions.ts';
import { openScene } from './scene.ts';

/** Commands of an agent that searches for the answer: all git objects, folders that may have answers, and names of the instance. */
const lookFor = ([
  mark = '',
  name = '',
]: readonly string[]): string => `MARK=${shellQuoted(mark)} TEST=${shellQuoted(name)}
pwd; git log --all --format='%H %s'; git branch -a; git tag; git reflog; git stash list; git fsck --lost-found 2>/dev/null
git show future 2>&1 | head -3
for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o | grep -aF -e "$MARK" -e "$TEST"; done
grep -rsF -e "$MARK" -e "$TEST" /testbed /workspace /tmp /home /root /eval.sh /opt/miniconda3/envs/testbed
env; hostname; cat /proc/self/mountinfo /proc/1/environ 2>/dev/null; echo looked`;

export function exampleFormSuite(runtime: 'docker' | 'rootfs'): void {
  const scene = openScene();
  const dataset = join(scene.folder, 'rows.jsonl');
  let instances: Map<string, ExampleInstance>;
  const each = (line: object) => EXAMPLE_FAMILIES.map(() => line);
  const rollouts = (name: string, agent: readonly string[]) =>
    scene.rollouts(
      name,
      words`--dataset ${dataset} --runtime ${runtime} --concurrency 2 --agent ${name} ${agent}`,
    );
  beforeAll(async () => {
    instances = await makeExampleInstances(scene.folder, runtime, { tag: `forms-${process.pid}` });
    await writeLines(dataset, [...instances.values().map(({ row }) => row)]);
  });
  afterAll(() => {
    const imageOf = (name: string): string => `localhost/forms-${process.pid}/${name}:1`;
    if (runtime === 'docker') execFileSync('docker', ['rmi', '-f', ...EXAMPLE_FAMILIES.map(imageOf)]);
  });

  test('gold resolves each; an empty and an unrelated patch resolve none', async () => {
    const unresolved = each({ outcome: 'judged', resolved: false, reward: 0 });
    const resolved = each({ outcome: 'judged', resolved: true, reward: 1 });
    expect(await rollouts('golden', [])).toMatchObject(resolved);
    expect(await rollouts('noop', [])).toMatchObject(unresolved);
    const ids = [...instances.values().map(({ id }) => id)];
    const patches = await writeLines(join(scene.folder, 'other.patches'), predictionsOf(ids, NEW_FILE));
    expect(await rollouts('patch', ['--patches', patches])).toMatchObject(unresolved);
  });

  test('an agent finds the answer neither in git, nor in the image, nor in names', async () => {
    const [first] = instances.values();
    const script = conversation(running(lookFor(first?.answers ?? [])));
    await using policy = await startScriptedPolicy({ script });
    const lines = await rollouts('mini', words`--policy-url ${policy.url} --model scripted`);
    expect(lines).toMatchObject(each({ outcome: 'judged', reward: 0 }));
    for (const [name, { id, answers }] of instances) {
      const seen = await scene.seen(`${scene.folder}/mini.jsonl#${id}.0`);
      expect(seen, name).toContain('looked');
      for (const answer of answers) expect(seen, name).not.toContain(answer);
    }
  });
}
