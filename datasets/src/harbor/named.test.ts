/** Tests that rows of trainers name folders of Harbor tasks. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { readDataset } from '../read.ts';

function taskFolder(folder: string, image = 'own/sort:1'): string {
  const files = {
    'task.toml': `[task]\nname = "own/sort"\n[environment]\ndocker_image = "${image}"\n`,
    ...{ 'instruction.md': 'Sort it.', 'tests/test.sh': 'true\n', 'environment/a': '' },
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

function written(...rows: readonly unknown[]): string {
  const file = join(temporaryFolder('named'), 'rows.jsonl');
  writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return file;
}

const request = { responses_create_params: { input: [] } };
const byPath = (path: string): Record<string, object> => ({
  'NeMo Gym, general': { task_name: 'own/sort', harbor_task: { path, source: null }, ...request },
  SkyRL: { prompt: path, env_class: null, env_extras: { data_source: path }, uid: '0' },
  verifiers: { example_id: 0, task: 'sort', prompt: [], info: { task_dir: path, docker_image: 'x' } },
  'verifiers, info as text': { example_id: 0, task: 'sort', info: JSON.stringify({ task_dir: path }) },
  rLLM: { task_id: 'sort', task_path: path, question: 'q', data_source: 'harbor:own' },
  verl: {
    data_source: 'own',
    extra_info: { tools_kwargs: { task: { metadata: { instance_id: 'sort', task_path: path } } } },
  },
});
const FORMS = Object.keys(byPath(''));

test.each(FORMS)('a row of %s names a task by its path', async (form) => {
  const path = taskFolder(join(temporaryFolder('tasks'), 'sort'));
  const { instances } = await readDataset(written(byPath(path)[form]));
  expect(instances).toMatchObject([{ instance_id: 'sort', family: 'harbor', image: 'own/sort:1' }]);
  expect(instances[0]?.problem_statement).toBe('Sort it.');
});

test.each(FORMS)('a row of %s from another machine names a task of --family-files', async (form) => {
  const tasks = temporaryFolder('tasks');
  taskFolder(join(tasks, 'sort'));
  const { instances } = await readDataset(written(byPath('/gone/sort')[form]), { familyFiles: tasks });
  expect(instances.map(({ instance_id }) => instance_id)).toEqual(['sort']);
});

test.each<[string, object, string]>([
  ['an alias and a name', { instance_id: 'own::sort' }, 'own/sort'],
  ['an alias that is no folder', { instance_id: 'own::sort', agent_ref: { name: 'harbor_agent' } }, 'sort'],
  ['a name with an organization', { task_name: 'own/sort' }, 'sort'],
])('a row of NeMo Gym with %s names a task of --family-files', async (_, row, at) => {
  const tasks = temporaryFolder('tasks');
  taskFolder(join(tasks, at));
  const { instances } = await readDataset(written({ ...row, ...request }), { familyFiles: tasks });
  expect(instances).toMatchObject([{ instance_id: 'sort', harbor: { name: 'own/sort' } }]);
});

test.each<[string, object, boolean, RegExp]>([
  ['a missing folder', { info: { task_dir: '/gone/a' } }, false, /line 2: info\.task_dir: .*\/gone\/a/],
  ['a name alone', { instance_id: 'a::b', ...request }, false, /line 2: instance_id: .*--family-files/],
  ['an unknown name', { task_name: 'a', ...request }, true, /line 2: task_name: .*task\.toml in .*\/a/],
  ['a name out of the folder', { instance_id: 'a::..', ...request }, true, /line 2: instance_id: /],
  ['a name with a path', { instance_id: 'a::../sort', ...request }, true, /line 2: instance_id: /],
])('the error about a row with %s has line and key', async (_, row, hasTasks, message) => {
  const tasks = temporaryFolder('tasks');
  const path = taskFolder(join(tasks, 'sort'));
  const file = written({ task_path: path }, row);
  await expect(readDataset(file, hasTasks ? { familyFiles: tasks } : {})).rejects.toThrow(message);
});

test('an error in a named task has the line, the folder and the key', async () => {
  const path = taskFolder(join(temporaryFolder('tasks'), 'sort'), 'Not An Image');
  await expect(readDataset(written({ task_path: path }))).rejects.toThrow(
    `line 1 (${path}): environment.docker_image: expected`,
  );
});

test('two rows that name one task are an error', async () => {
  const path = taskFolder(join(temporaryFolder('tasks'), 'sort'));
  await expect(readDataset(written({ task_path: path }, { task_path: path }))).rejects.toThrow(
    /line 2.*instance_id: expected an id that no other row has/,
  );
});

const named = (id: string) => ({ instance_id: id, ...request });

test('tasks of two folders with one name have the ids of both folders', async () => {
  const tasks = temporaryFolder('tasks');
  const paths = ['a/t', 'b/t', 'b/u'].map((at) => taskFolder(join(tasks, at)));
  const idsOf = async (...[rows, options]: [object[], object]) =>
    (await readDataset(written(...rows), options)).instances.map(({ instance_id }) => instance_id);
  const ids = ['a__t', 'b__t', 'u'];
  expect(await idsOf(['a::t', 'b::t', 'b::u'].map(named), { familyFiles: tasks })).toEqual(ids);
  expect(
    await idsOf(
      paths.map((task_path) => ({ task_path })),
      {},
    ),
  ).toEqual(ids);
});

test('an alias without a folder is an error beside other aliases, and else a warning', async () => {
  const tasks = temporaryFolder('tasks');
  for (const at of ['t', 'a/u']) taskFolder(join(tasks, at));
  const read = (...ids: string[]) => readDataset(written(...ids.map(named)), { familyFiles: tasks });
  await expect(read('a::u', 'zzz::t')).rejects.toThrow(
    /line 2: instance_id: expected the folder .*\/zzz, because the rows have 2 aliases/,
  );
  const { warnings, instances } = await read('zzz::t');
  expect(instances).toHaveLength(1);
  expect(warnings).toEqual([expect.stringMatching(/no folder .*\/zzz; the task is .*\/t$/)]);
  expect((await read('a::u')).warnings).toEqual([]);
});
