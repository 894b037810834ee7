/** Reads the rows of Harbor tasks. A row contains the files of the task's folder (`harbor/folder.ts`). docs/harbor.md has the rules. */
import { createHash } from 'node:crypto';
import { BUILT_IMAGES, HARBOR_TASKS, type HarborTask } from '@swefarm/shared';
import { parse, TomlError } from 'smol-toml';
import { asObject, type FieldReader, type Row } from '../fields/fields.ts';
import { isImageName, withTag } from '../fields/image.ts';
import { readDockerignore } from '../harbor/dockerignore.ts';
import { MOST_TASK_BYTES, TASK_COLUMN, type TaskRow, type TaskRowFile } from '../harbor/folder.ts';
import { mebibytes, networkOf, TaskToml, unprovidedIn } from '../harbor/tasktoml.ts';
import { type Family, type InstanceDraft, NOTHING, type RowContext } from './family.ts';

const MIB = 1024 ** 2;
const TESTS = 'tests/test.sh';
const SOLUTION = 'solution/solve.sh';
const ENVIRONMENT = 'environment/';
const DOCKERFILE = `${ENVIRONMENT}Dockerfile`;
const COMPOSE = /^environment\/(?:docker-)?compose\.ya?ml$/;
const SHOWN_KEYS = 20;

export const harbor: Family = {
  name: 'harbor',
  columns: [TASK_COLUMN],
  fits: (row) => asObject(row[TASK_COLUMN]) !== null,
  names: (row) => ({ id: row.instance_id, repo: row.repo ?? row.instance_id }),
  read: readTask,
};

function readTask(read: FieldReader, context: RowContext): InstanceDraft {
  const row = asObject(read.row[TASK_COLUMN]) as TaskRow | null;
  const files = asObject(row?.files) as Record<string, TaskRowFile> | null;
  if (!row || !files) {
    read.complain(TASK_COLUMN, 'the content of a task', read.row[TASK_COLUMN], 'read the folder again');
    return NOTHING;
  }
  const toml = readToml(read, textOf(files['task.toml']));
  const instruction = textOf(files['instruction.md']);
  const testScript = files[TESTS];
  if (toml === null) return NOTHING;
  for (const { key, reason } of unprovidedIn(toml))
    read.refuse(`tasks with ${reason}`, key, `a task without ${reason}`, `a task with ${reason}`);
  const compose = Object.keys(files).find((name) => COMPOSE.test(name));
  if (compose !== undefined)
    read.refuse('tasks with a Compose file', compose, 'a task of one container', 'a Compose file');
  if (read.problems.length > 0) return NOTHING;
  if (instruction === null) read.complain('instruction.md', 'a text', undefined, 'add the file');
  if (!testScript) read.complain(TESTS, 'a script', undefined, 'add the file');
  warnOfUnused(read, toml, files);
  const image = imageOf(read, toml, files);
  const instanceId = read.id();
  const name = toml.task?.name ?? instanceId;
  const { workdir } = toml.environment;
  return {
    instance_id: instanceId,
    repo: name,
    base_commit: '',
    problem_statement: withoutCanary(instruction ?? ''),
    patch: textOf(files[SOLUTION]) ?? '',
    FAIL_TO_PASS: [],
    PASS_TO_PASS: [],
    family: 'harbor',
    image: image.name,
    needs: HARBOR_TASKS,
    environment: {
      activate: '',
      env: resolved(read, 'environment.env', toml.environment.env, context),
      ...(workdir === undefined ? {} : { workdir }),
    },
    harbor: {
      name,
      digest: row.digest,
      files: neededFiles(read, files, image),
      ...(image.build ? { build: { timeout: toml.environment.build_timeout_sec } } : {}),
      network: networkOf(toml) === 'no-network' ? 'no-network' : 'public',
      limits: limitsOf(read, toml),
      ...(toml.environment.healthcheck ? { healthcheck: toml.environment.healthcheck } : {}),
      agent: { ...numbered('timeout', toml.agent.timeout_sec), ...userOf(toml.agent.user) },
      solution_env: resolved(read, 'solution.env', toml.solution.env, context),
      verifier: {
        timeout: toml.verifier.timeout_sec,
        ...userOf(toml.verifier.user),
        env: resolved(read, 'verifier.env', toml.verifier.env, context),
      },
      ...(context.rewardKey === undefined ? {} : { reward_key: context.rewardKey }),
    } satisfies HarborDraft,
  };
}

type HarborDraft = NonNullable<InstanceDraft['harbor']>;

const textOf = (file: TaskRowFile | undefined): string | null =>
  file?.base64 === undefined ? null : Buffer.from(file.base64, 'base64').toString('utf8');

const numbered = <K extends string>(key: K, value: number | undefined) =>
  (value === undefined ? {} : { [key]: value }) as { [P in K]?: number };

const userOf = (user: string | number | undefined): { user?: string } =>
  user === undefined ? {} : { user: String(user) };

/** Returns the known keys of `task.toml` and warns of unknown keys. Returns null and records the problems if the file is invalid. */
function readToml(read: FieldReader, text: string | null): TaskToml | null {
  if (text === null) {
    read.complain('task.toml', 'TOML', undefined, 'add the file');
    return null;
  }
  let tree: Row;
  try {
    // `metadata` may contain integers that a JavaScript number cannot represent.
    tree = parse(text, { integersAsBigInt: 'asNeeded' });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const why = (error.message.split('\n')[0] ?? '').slice(0, 200);
    read.complain(
      'task.toml',
      'TOML',
      `${why} (line ${error.line}, column ${error.column})`,
      'correct the file',
    );
    return null;
  }
  const unknown = unknownKeys(tree);
  if (unknown.length > 0) read.warn(`task.toml: unknown keys: ${unknown.slice(0, SHOWN_KEYS).join(', ')}`);
  const parsed = TaskToml.safeParse(tree);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) {
    const value = issue.path.reduce<unknown>((at, key) => (at as Row | undefined)?.[String(key)], tree);
    const expected = issue.message.replace(/^(?:Invalid input: )?expected /, '');
    read.complain(issue.path.join('.'), expected, value, 'correct task.toml');
  }
  return null;
}

/** Removes the keys that the schema does not know from `tree`, and returns their paths. */
function unknownKeys(tree: Row): string[] {
  const issues = TaskToml.safeParse(tree).error?.issues ?? [];
  return issues.flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') return [];
    const at = issue.path.reduce<Row>((inner, key) => inner[String(key)] as Row, tree);
    return issue.keys.map((key) => {
      delete at[key];
      return [...issue.path, key].join('.');
    });
  });
}

/** Warns of parts of a task that Harbor uses and the farm ignores. These parts do not change the verdict. */
function warnOfUnused(read: FieldReader, { artifacts }: TaskToml, files: Record<string, unknown>): void {
  if (artifacts.length > 0) read.warn('task.toml: the farm does not copy artifacts out of the container');
  if (files['trajectory.json'])
    read.warn('the farm does not load trajectory.json: the agent starts without earlier turns');
  for (const folder of ['tests', 'solution'])
    if (files[`${folder}/.harborignore`])
      read.warn(`the farm does not read ${folder}/.harborignore: it copies all files`);
}

type TaskImage = { name: string; build: boolean; needsFiles: boolean };

/** Returns the image that the task names. Otherwise, workers build an image, and its name contains the hash of `environment/`. */
function imageOf(read: FieldReader, toml: TaskToml, files: Record<string, TaskRowFile>): TaskImage {
  const { docker_image: named } = toml.environment;
  const hasDockerfile = files[DOCKERFILE] !== undefined;
  if (named !== undefined) {
    if (!isImageName(named))
      read.complain('environment.docker_image', 'the name of a container image', named, 'correct task.toml');
    return { name: withTag(named), build: false, needsFiles: !hasDockerfile };
  }
  if (!hasDockerfile)
    read.complain(DOCKERFILE, 'a Dockerfile', undefined, 'add it, or name environment.docker_image');
  const hash = createHash('sha256');
  for (const [name, { base64 = '', executable }] of builtFiles(files))
    hash.update(`${name}\0${executable ? 'x' : '-'}\0${base64}\n`);
  return { name: BUILT_IMAGES + hash.digest('hex'), build: true, needsFiles: true };
}

/** Returns the files of `environment/` that `.dockerignore` does not exclude from the build. */
function builtFiles(files: Record<string, TaskRowFile>): [string, TaskRowFile][] {
  const isIgnored = readDockerignore(textOf(files[`${ENVIRONMENT}.dockerignore`]) ?? '');
  // The builder reads these two files even if they are excluded, and then removes them from the context.
  const read = [DOCKERFILE, `${ENVIRONMENT}.dockerignore`];
  return filesBelow(files, ENVIRONMENT).filter(
    ([name]) => read.includes(name) || !isIgnored(name.slice(ENVIRONMENT.length)),
  );
}

const filesBelow = (files: Record<string, TaskRowFile>, ...folders: string[]) =>
  Object.entries(files)
    .filter(([name]) => folders.some((folder) => name.startsWith(folder)))
    .sort(([a], [b]) => (a < b ? -1 : 1));

function neededFiles(
  read: FieldReader,
  files: Record<string, TaskRowFile>,
  { build, needsFiles }: TaskImage,
): HarborDraft['files'] {
  const copied = needsFiles ? filesBelow(files, ENVIRONMENT) : [];
  const environment = build ? builtFiles(files) : copied;
  const needed: HarborDraft['files'] = {};
  for (const [name, { base64, bytes, executable }] of [
    ...filesBelow(files, 'tests/', 'solution/'),
    ...environment,
  ]) {
    if (base64 === undefined)
      read.complain(
        name,
        `files of at most ${MOST_TASK_BYTES / MIB} MiB together`,
        bytes,
        'build the image yourself and name it with environment.docker_image',
      );
    else needed[name] = { base64, executable };
  }
  return needed;
}

function limitsOf(read: FieldReader, { environment }: TaskToml): HarborTask['limits'] {
  const { cpus, memory_mb, storage_mb, memory, storage } = environment;
  const either = (key: string, number: number | undefined, text: string | undefined) => {
    const old = mebibytes(text);
    if (number !== undefined && old !== undefined && number !== old)
      read.complain(`environment.${key}`, `the same size as ${key}_mb`, text, 'leave one of them out');
    const size = number ?? old;
    return size === undefined ? undefined : Math.round(size * MIB);
  };
  return {
    ...numbered('cpus', cpus),
    ...numbered('memory_bytes', either('memory', memory_mb, memory)),
    ...numbered('disk_bytes', either('storage', storage_mb, storage)),
  };
}

/** Replaces values of the form `${VAR}` or `${VAR:-default}` by the variables that the caller passes to tasks. */
function resolved(
  read: FieldReader,
  key: string,
  env: Record<string, string>,
  { taskEnv = {} }: RowContext,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => {
      const [, variable = '', fallback] = /^\$\{(\w+)(?::-([^}]*))?\}$/s.exec(value) ?? [];
      if (variable === '') return [name, value];
      const found = Object.hasOwn(taskEnv, variable) ? taskEnv[variable] : fallback;
      if (found === undefined)
        read.complain(
          `${key}.${name}`,
          `a value of ${variable}`,
          value,
          `give it with --task-env ${variable}`,
        );
      return [name, found ?? ''];
    }),
  );
}

/** Removes leading comments and headings with the word "canary", and then leading empty lines, as Harbor does. */
export function withoutCanary(text: string): string {
  const lines = text.split('\n');
  let from = 0;
  while (/^\s*(?:<!--.*canary.*-->|#.*canary.*)\s*$/i.test(lines[from] ?? '')) from += 1;
  while (from < lines.length && lines[from]?.trim() === '') from += 1;
  return lines.slice(from).join('\n');
}
