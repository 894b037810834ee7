import { cp, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { temporaryFolder } from '../../test/temporaryfolder.ts';
import { loadScript } from '../policy/script.ts';
import { readBaseRecipe, readExamples } from './recipe.ts';

const SHIPPED = resolve(import.meta.dirname, '../../../examples');
const ID = 'r1chardj0n3s__parse-1.20.2';
let dir: string;

beforeAll(async () => {
  dir = temporaryFolder('recipes');
  await cp(SHIPPED, dir, { recursive: true });
});

async function change(edit: (recipe: Record<string, unknown>) => void): Promise<void> {
  const recipe = JSON.parse(await readFile(join(SHIPPED, `recipes/${ID}.json`), 'utf8'));
  edit(recipe);
  await writeFile(join(dir, `recipes/${ID}.json`), JSON.stringify(recipe));
}

test('the examples have a C extension, a builder commit, a dirty tree and both kinds of tests', async () => {
  const recipes = (await readExamples(SHIPPED)).map(({ recipe }) => recipe);
  expect(recipes.length).toBeGreaterThanOrEqual(4);
  expect(recipes.some((recipe) => recipe.compiles)).toBe(true);
  expect(recipes.some((recipe) => recipe.builder_commit.length > 0)).toBe(true);
  expect(recipes.some((recipe) => recipe.dirty.length > 0)).toBe(true);
  for (const recipe of recipes) {
    expect(recipe.FAIL_TO_PASS, recipe.instance_id).not.toHaveLength(0);
    expect(recipe.PASS_TO_PASS, recipe.instance_id).not.toHaveLength(0);
  }
  expect((await readBaseRecipe(SHIPPED)).packages).toContain('gcc');
});

test('the scripted policy has the same five kinds of rollouts for every example', async () => {
  const script = loadScript(join(SHIPPED, 'policy/examples.yaml'));
  for (const { recipe, problem } of await readExamples(SHIPPED)) {
    const conversations = script.conversations.filter(({ match }) => problem.includes(match));
    expect(conversations, recipe.instance_id).toHaveLength(1);
    const [resolves, wrong, limit, fault, hiccup] = conversations[0]?.variants ?? [];
    for (const turns of [resolves, wrong, hiccup]) expect(turns?.at(-1)?.submit).toBe(true);
    expect(limit?.some((turn) => turn.submit !== undefined)).toBe(false);
    expect(fault?.at(-1)?.fault?.times).toBeUndefined();
    expect(hiccup?.filter((turn) => turn.fault?.times === 1)).toHaveLength(1);
  }
});

test.each([
  ['an unknown field', (recipe: Record<string, unknown>) => (recipe.pacth = []), /Unrecognized key.*pacth/],
  [
    'a short checksum',
    (recipe: Record<string, unknown>) => (recipe.broken = { version: '1', sdist_sha256: 'ab' }),
    /broken\.sdist_sha256/,
  ],
  ['an unpinned requirement', (recipe: Record<string, unknown>) => (recipe.pip = ['attrs']), /pip\.0/],
  [
    'another id than the file',
    (recipe: Record<string, unknown>) => (recipe.instance_id = 'a__b-1'),
    /file name says/,
  ],
])('%s is named with its file', async (_what, edit, message) => {
  await change(edit);
  const reading = readExamples(dir, [ID]);
  await expect(reading).rejects.toThrow(message);
  await expect(reading).rejects.toThrow(`recipes/${ID}.json`);
});

test('the error for an unknown example lists the known ones', async () => {
  await expect(readExamples(SHIPPED, ['nobody__nothing-1'])).rejects.toThrow(
    /no example "nobody__nothing-1"; there are .*parse/,
  );
});
