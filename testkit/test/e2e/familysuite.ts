/**
 * Tests instances of several dataset families in one file on one runtime: gold, an unrelated patch, a patch that does not apply, and
 * an agent that searches for the answer. Multi-SWE-bench is not graded here, because its parsers are a separate package.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FAMILY_NAMES, type FamilyInstance, makeFamilyInstances } from '../../src/families/instances.ts';
import { readLines, writeLines } from '../../src/lines.ts';
import { conversation, running } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { type FamilyImages, openFamilyImages } from './familyimages.ts';
import { misfit, NEW_FILE, predictionsOf } from './predictions.ts';
import { type Line, openScene } from './scene.ts';

const GRADED = FAMILY_NAMES.filter((name) => name !== 'multi-swe');

/** Searches the folders in which images of these families have code and answers, and all git objects. */
const LOOK = `cd / && grep -rlsE 'a [+] b|assert add.1, 2' /testbed /calc /app /home /root /r2e_tests /workspace /tmp
for d in /testbed /calc /app /home/cli; do cd $d 2>/dev/null || continue
git log --all --format='%H %s'; git tag; git reflog
for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o | grep -a 'a + b'; done; done
env; hostname; cat /proc/self/mountinfo; echo looked`;

/** Runs the cases on a runtime. */
export function familySuite(runtime: 'docker' | 'rootfs'): void {
  const scene = openScene();
  const { folder } = scene;
  let instances: Map<string, FamilyInstance>;
  let images: FamilyImages | undefined;
  beforeAll(async () => {
    const tools = join(folder, 'tools');
    await mkdir(tools);
    if (runtime === 'docker') images = await openFamilyImages('families');
    scene.env.SWEFARM_PARSER_IMAGE = images?.base ?? `host+dir:${tools}`;
    instances = await makeFamilyInstances(join(folder, 'trees'), images);
    const rowsOf = (names: readonly string[]) => names.map((name) => instances.get(name)?.row);
    await writeLines(join(folder, 'all.jsonl'), rowsOf(FAMILY_NAMES));
    await writeLines(join(folder, 'graded.jsonl'), rowsOf(GRADED));
  });
  afterAll(() => images?.[Symbol.asyncDispose]());

  /** Evaluates the same patch for each instance and returns the lines by instance. Null: gold. */
  async function evaluated(run: string, patch: string | null): Promise<Map<string, Line>> {
    const ids = GRADED.map((family) => instances.get(family)?.id ?? '');
    const file = await writeLines(join(folder, `${run}.predictions.jsonl`), predictionsOf(ids, patch));
    const output = join(folder, `${run}.jsonl`);
    const { stderr } =
      await scene.swefarm`eval --dataset ${folder}/graded.jsonl --runtime ${runtime} --run-id ${run}
      --predictions ${patch === null ? 'gold' : file} --output ${output} --report-dir ${folder} --logs-dir ${folder}/logs`;
    const found = new Map((await readLines<Line>(output)).map((line) => [line.instance_id, line]));
    expect(found.size, stderr).toBe(GRADED.length);
    return found;
  }

  describe.each([
    ['gold', null, true],
    ['a patch that has nothing to do with the bug', NEW_FILE, false],
    ['a patch that does not apply', misfit('calc.py'), false],
  ] as const)('%s', (name, patch, resolved) => {
    let found: Map<string, Line>;
    beforeAll(async () => {
      found = await evaluated(name.replaceAll(' ', '-'), patch);
    });
    test.each(GRADED)(`of %s is ${resolved ? '' : 'un'}resolved`, (family) => {
      const line = found.get(instances.get(family)?.id ?? '');
      expect(line).toMatchObject({ outcome: 'judged', resolved });
    });
  });

  test('an agent finds neither the fix, nor the tests, nor the id of the fix, in any family', async () => {
    await using policy = await startScriptedPolicy({ script: conversation(running(LOOK)) });
    const output = join(folder, 'agent.jsonl');
    await scene.done`rollout --dataset ${folder}/all.jsonl --agent mini --output ${output}
      --policy-url ${policy.url} --model scripted --runtime ${runtime} --activate true`;
    const rollouts = await readLines<Line>(output);
    expect(rollouts.map(({ reward }) => reward)).toEqual(FAMILY_NAMES.map(() => 0));
    for (const [name, { id, fix }] of instances) {
      const seen = await scene.seen(`${output}#${id}.0`);
      expect(seen, name).toContain('looked');
      expect(seen, name).not.toMatch(/a \+ b|THE FIX|v99|future|r2e_tests\/|\.patch/);
      expect(seen, name).not.toContain(fix);
    }
  });
}
