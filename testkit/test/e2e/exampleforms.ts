/** One table of cases for made instances of SWE-rebench V1, SWE-Lego and Scale-SWE on one runtime. */
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { EXAMPLE_FAMILIES, type ExampleInstance, makeExampleInstances } from './exampleinstances.ts';
import { readSeen } from './familysuite.ts';
import { openSmithFarm, type SmithFarm } from './smithfarm.ts';

const NEW_FILE =
  'diff --git a/x.txt b/x.txt\nnew file mode 100644\n--- /dev/null\n+++ b/x.txt\n@@ -0,0 +1 @@\n+x\n';

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** An agent without scruples: everything that git holds, everything on the disk where answers may lie, and what names the instance. */
const lookFor = ([
  mark = '',
  name = '',
]: readonly string[]): string => `MARK=${quote(mark)} TEST=${quote(name)}
pwd; git log --all --format='%H %s'; git branch -a; git tag; git reflog; git stash list; git fsck --lost-found 2>/dev/null
git show future 2>&1 | head -3
for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o | grep -aF -e "$MARK" -e "$TEST"; done
grep -rsF -e "$MARK" -e "$TEST" /testbed /workspace /tmp /home /root /eval.sh /opt/miniconda3/envs/testbed
env; hostname; cat /proc/self/mountinfo /proc/1/environ 2>/dev/null; echo looked`;

export function exampleFormSuite(runtime: 'docker' | 'rootfs'): void {
  let farm: SmithFarm;
  let instances: Map<string, ExampleInstance>;
  let dataset: string;
  const each = (line: object) => EXAMPLE_FAMILIES.map(() => line);
  beforeAll(async () => {
    farm = await openSmithFarm();
    instances = await makeExampleInstances(farm.folder, runtime, { tag: `forms-${process.pid}` });
    dataset = await farm.write(
      'rows.jsonl',
      [...instances.values()].map(({ row }) => row),
    );
  });
  afterAll(async () => {
    if (runtime === 'docker')
      execFileSync('docker', ['rmi', '-f', ...EXAMPLE_FAMILIES.map((name) => imageOf(name))]);
    await farm[Symbol.asyncDispose]();
  });
  const imageOf = (name: string): string => `localhost/forms-${process.pid}/${name}:1`;

  test('gold resolves each, nothing and something else none', async () => {
    const golden = await farm.rollouts(dataset, runtime, 'golden', ['--agent', 'golden']);
    expect(golden).toMatchObject(each({ outcome: 'judged', resolved: true, reward: 1 }));
    const noop = await farm.rollouts(dataset, runtime, 'noop', ['--agent', 'noop']);
    expect(noop).toMatchObject(each({ outcome: 'judged', resolved: false, reward: 0 }));
    const patches = await farm.write(
      'other.patches',
      [...instances.values()].map(({ id }) => ({
        ...{ instance_id: id, model_name_or_path: 'm', model_patch: NEW_FILE },
      })),
    );
    const other = await farm.rollouts(dataset, runtime, 'other', ['--agent', 'patch', '--patches', patches]);
    expect(other).toMatchObject(each({ outcome: 'judged', resolved: false, reward: 0 }));
  });

  test('an agent finds the answer neither in git, nor in the image, nor in what names the instance', async () => {
    const [first] = instances.values();
    const turns = [
      { command: lookFor(first?.answers ?? []), repeat: 1 },
      { submit: true as const, repeat: 1 },
    ];
    await using policy = await startScriptedPolicy({ script: { conversations: [{ variants: [turns] }] } });
    const asked = ['--agent', 'mini', '--policy-url', policy.url, '--model', 'scripted'];
    const lines = await farm.rollouts(dataset, runtime, 'agent', asked);
    expect(lines).toMatchObject(each({ outcome: 'judged', reward: 0 }));
    for (const [name, { id, answers }] of instances) {
      const seen = await readSeen(`${dataset}.agent.out#${id}.0`, farm.env);
      expect(seen, name).toContain('looked');
      for (const answer of answers) expect(seen, name).not.toContain(answer);
    }
  });
}
