/**
 * Runs Harbor 0.25.0 from PyPI on tasks of `swefarm dataset to-harbor` and on jobs of `swefarm export --format harbor`, and compares its
 * rewards with the farm's. `node testkit/clients/harbor/run.ts --folder DIR [--only PART,…]`; `bash setup.sh DIR` installs Harbor.
 */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { runCommand, words } from '../../src/launchers/commands.ts';
import { readLines, writeLines } from '../../src/lines.ts';
import { loadScript } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { longestLine } from '../../test/e2e/predictions.ts';
import { startChecks } from '../gym/gym.ts';
import { makeRows } from './rows.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const GRADERS = ['auto', 'swegym'] as const;

/** Prints all objects of git and all files in which an agent could find the fix or its tests. */
const LOOK = `cd /testbed; git log --all --format=%s; git tag; git branch -a
for d in /testbed/.git /var/lib/swefarm/start.git; do
  for o in $(git --git-dir $d cat-file --batch-all-objects --batch-check='%(objectname)'); do git --git-dir $d cat-file -p $o; done
done
grep -rsh . /testbed /home /root /tmp /opt/swefarm-prepare /r2e_tests --include='*.py' --include='*.diff' --include='*.sh'; echo looked`;

const PARTS = ['gold', 'job', 'none', 'wrong', 'look'];

const { values } = parseArgs({
  options: { folder: { type: 'string' }, only: { type: 'string', default: PARTS.join() } },
});
if (values.folder === undefined) {
  console.error(`usage: run.ts --folder DIR [--only ${PARTS.join()}]`);
  process.exit(2);
}
const harborFolder = resolve(values.folder);
const { check, wrong } = startChecks();
await using stack = new AsyncDisposableStack();
const folder = await mkdtemp(join(tmpdir(), 'swefarm-harborclient-'));
stack.defer(() => rm(folder, { recursive: true, force: true }));
const at = (name: string): string => join(folder, name);
const farm = { SWEFARM_STATE_DIR: at('state'), SWEFARM_SCRATCH_DIR: at('scratch') };
const rows = stack.use(await makeRows(at('rows')));

await writeTasks();
const idOfTask = await instancesOfTasks();
const patches = await writeWrongPatches();
const run: Record<string, () => Promise<void>> = {
  gold: () => compare('gold', 'golden', [], { agent: 'oracle', tasks: at('tasks') }, 1),
  job: readOurJob,
  none: () => compare('no patch', 'noop', [], { agent: 'nop', tasks: at('tasks') }, 0),
  wrong: () =>
    compare(
      'a wrong patch',
      'patch',
      words`--patches ${patches}`,
      { agent: 'oracle', tasks: at('wrong') },
      0,
    ),
  look: lookInside,
};
for (const part of values.only.split(',')) await run[part]?.();
console.log(wrong.length === 0 ? 'all good' : `${wrong.length} wrong`);
process.exitCode = wrong.length === 0 ? 0 : 1;

async function swefarm(...args: string[]): Promise<void> {
  const { code, stderr } = await runCommand('swefarm', args, farm);
  check(
    `rc of swefarm ${args.slice(0, 2).join(' ')}${code === 0 ? '' : `: ${stderr.slice(-2000)}`}`,
    code,
    0,
  );
}

/** Runs a program of the venv. Harbor uses the plugins that setup.sh installed because the engine had none. */
async function inVenv(program: 'harbor' | 'python', ...args: string[]): Promise<string> {
  const plugins = await readdir(join(harborFolder, 'docker/cli-plugins'));
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    ...{ HARBOR_TELEMETRY: '0', NO_COLOR: '1', PYTHONWARNINGS: 'ignore' },
    ...(plugins.length > 0 && { DOCKER_CONFIG: join(harborFolder, 'docker') }),
  };
  const options = { cwd: folder, env, maxBuffer: 1e9 };
  const { stdout } = await promisify(execFile)(join(harborFolder, 'venv/bin', program), args, options);
  return stdout;
}

/** Writes the tasks. Without a registry, Harbor cannot pull the sidecar that isolates tasks, so the network is public here. */
async function writeTasks(): Promise<void> {
  for (const grader of GRADERS) {
    await writeLines(at(`${grader}.jsonl`), rows[grader]);
    const flags = words`--grader ${grader} --network public --output-dir ${at(`tasks-${grader}`)}`;
    await swefarm('dataset', 'to-harbor', '--dataset', at(`${grader}.jsonl`), ...flags);
    await cp(at(`tasks-${grader}`), at('tasks'), { recursive: true });
  }
}

async function instancesOfTasks(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const name of await readdir(at('tasks'))) {
    const text = await readFile(at(`tasks/${name}/task.toml`), 'utf8');
    found.set(name, /^instance_id = "(.*)"$/m.exec(text)?.[1] ?? name);
  }
  return found;
}

/** Copies the tasks and makes the solutions wrong. Writes the same patches to a file for the farm. */
async function writeWrongPatches(): Promise<string> {
  await cp(at('tasks'), at('wrong'), { recursive: true });
  const predictions: object[] = [];
  for (const [name, instance_id] of idOfTask) {
    const path = at(`wrong/${name}/solution/gold.diff`);
    const gold = await readFile(path, 'utf8');
    const model_patch = gold.replace(/^\+(?!\+\+)(\s*).*$/m, "+$1raise RuntimeError('wrong')");
    await writeFile(path, model_patch);
    predictions.push({ instance_id, model_name_or_path: 'wrong', model_patch });
  }
  return await writeLines(at('wrong.jsonl'), predictions);
}

/** Searches the images of the agent for the longest line of the fix, for hidden tests and for later commits. */
async function lookInside(): Promise<void> {
  for (const name of await readdir(at('tasks'))) {
    const environment = at(`tasks/${name}/environment`);
    const image = `localhost/harbor-look:${process.pid}`;
    const docker = (...args: string[]) => promisify(execFile)('docker', args, { maxBuffer: 1e9 });
    await docker('build', '-q', '-t', image, environment);
    const { stdout } = await docker('run', '--rm', '--network', 'none', image, 'bash', '-c', LOOK);
    await docker('rmi', '-f', image);
    const fix = longestLine(await readFile(at(`tasks/${name}/solution/gold.diff`), 'utf8'), '+');
    const found = [fix, 'THE FIX', 'v99', 'Bug Patch', 'assert add(1, 2)'].filter((one) =>
      stdout.includes(one),
    );
    check(`${name}: what an agent finds`, [stdout.includes('looked'), found], [true, []]);
  }
}

type Rewards = Record<string, number | string | null>;

/** Compares the rewards of an agent of the farm with the rewards of an agent of Harbor. */
async function compare(
  name: string,
  ours: string,
  flags: readonly string[],
  theirs: { agent: string; tasks: string },
  wanted: number,
): Promise<void> {
  const from = performance.now();
  const farmed: Rewards = {};
  for (const grader of GRADERS) {
    const output = at(`${ours}-${grader}.jsonl`);
    const dataset = words`--dataset ${at(`${grader}.jsonl`)} --grader ${grader}`;
    await swefarm(
      'rollout',
      ...dataset,
      '--agent',
      ours,
      ...flags,
      ...words`--runtime docker --concurrency 2 --output ${output}`,
    );
    for (const line of await readLines<{ instance_id: string; reward: number | null }>(output))
      farmed[line.instance_id] = line.reward;
  }
  const job = `${ours}-job`;
  await inVenv(
    'harbor',
    ...words`run -p ${theirs.tasks} -a ${theirs.agent} -n 2 --quiet --yes --jobs-dir ${at('jobs')} --job-name ${job}`,
  );
  check(`${name}: rewards of the farm and of Harbor`, await rewardsOf(job), sorted(farmed));
  check(`${name}: rewards`, [...new Set(Object.values(farmed))], [wanted]);
  check(`${name}: instances`, Object.keys(farmed).length, idOfTask.size);
  console.log(`${name}: ${idOfTask.size} instances, ${((performance.now() - from) / 1000).toFixed(0)} s`);
}

async function rewardsOf(job: string): Promise<Rewards> {
  const found: Rewards = {};
  for (const name of await readdir(at(`jobs/${job}`))) {
    if (!name.includes('__')) continue;
    const result = JSON.parse(await readFile(at(`jobs/${job}/${name}/result.json`), 'utf8'));
    found[idOfTask.get(result.task_name) ?? result.task_name] =
      result.verifier_result?.rewards.reward ?? result.exception_info?.exception_message ?? null;
  }
  return sorted(found);
}

/** Sorts an object by key, because `check` compares the JSON of objects. */
function sorted<T>(found: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Exports rollouts of a scripted model, reads the job with Harbor's classes and viewer, and lets Harbor grade the patches again. */
async function readOurJob(): Promise<void> {
  const script = loadScript(join(ROOT, 'examples/policy/examples.yaml'));
  await using policy = await startScriptedPolicy({ script });
  const [dataset, output, job] = [
    await writeLines(at('examples.jsonl'), rows.examples),
    at('mini.jsonl'),
    at('jobs/farm'),
  ];
  await swefarm(
    'rollout',
    ...words`--dataset ${dataset} --agent mini --group-size 2 --policy-url ${policy.url} --model scripted --token-mode echo
      --runtime docker --concurrency 2 --output ${output}`,
  );
  await swefarm('export', output, ...words`--format harbor --form tokens --out ${job}`);
  const read = JSON.parse(await inVenv('python', join(import.meta.dirname, 'readjob.py'), job));
  const trials = 2 * rows.examples.length;
  check('job in the viewer', read.jobs.includes('farm'), true);
  check('tasks in the viewer', read.tasks, rows.examples.length);
  check(
    'trials, trajectories, valid rewards',
    [read.trials, read.trajectories, read.valid],
    [trials, trials, trials],
  );
  check('counts of the job', read.counts, 'equal');
  await inVenv(
    'harbor',
    ...words`job regrade ${job} -p ${at('tasks')} -n 2 --jobs-dir ${at('jobs')} --job-name regraded`,
  );
  check('rewards after the regrade', await sortedRewards('regraded'), await sortedRewards('farm'));
}

/** Returns the rewards of each task in ascending order. */
async function sortedRewards(job: string): Promise<Record<string, number[]>> {
  const found: Record<string, number[]> = {};
  for (const name of await readdir(at(`jobs/${job}`))) {
    if (!name.includes('__')) continue;
    const result = JSON.parse(await readFile(at(`jobs/${job}/${name}/result.json`), 'utf8'));
    const own = [...(found[result.task_name] ?? []), result.verifier_result?.rewards.reward ?? -1];
    found[result.task_name] = own.toSorted((a, b) => a - b);
  }
  return sorted(found);
}
