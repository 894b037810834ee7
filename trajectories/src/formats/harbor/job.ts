/** Writes rollouts as a job of Harbor 0.25: a folder with one folder per trial. `harbor view` and `harbor job regrade` read the job. */
import { basename, dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { jsonText, UsageError } from '@swefarm/shared';
import { openFolderTree } from '../../export/foldertree.ts';
import type { ExportFormat, ExportRequest, ExportWriter } from '../../export/format.ts';
import type { LineChoice } from '../../export/lines.ts';
import type { ExportedRollout } from '../../export/rollout.ts';
import { writeArtifacts } from './artifacts.ts';
import { detailsOf } from './details.ts';
import { countedOf, statsOf } from './stats.ts';
import { trajectoryText } from './trajectory.ts';
import { type Job, type Trial, trialOf, uuidOf } from './trial.ts';

export const harborJob: ExportFormat = {
  description:
    "Harbor's folder of a job: results, trajectories (ATIF), test logs, patches; tokens adds rollout_details",
  forms: ['job', 'tokens'],
  lines: ['all', 'main'],
  shape: 'folder',
  open: openJob,
};

async function openJob({ path, form, lines, samples, fingerprint }: ExportRequest): Promise<ExportWriter> {
  const tree = await openFolderTree(path);
  const folder = resolve(path);
  const job: Job = {
    id: uuidOf(fingerprint),
    name: basename(folder),
    folder,
    uri: `${pathToFileURL(folder).href}/`,
  };
  const written = createSummary(job, samples);
  const names = new Set<string>();
  return {
    ...tree,
    async write(rollout) {
      const trajectory = rollout.content?.trajectory ?? null;
      const details = form === 'tokens' && trajectory ? detailsOf(trajectory, lines) : null;
      const trial = trialOf(job, rollout, details);
      if (names.has(trial.trial_name))
        throw new UsageError(
          `${rollout.line.rollout_id}: another rollout has the trial name ${trial.trial_name}`,
        );
      names.add(trial.trial_name);
      for (const [name, text] of Object.entries(filesOf(rollout, trial, lines)))
        await tree.write(`${trial.trial_name}/${name}`, text);
      await writeArtifacts(tree, `${trial.trial_name}/artifacts`, rollout);
      written.add(trial);
    },
    async finish() {
      await tree.write('config.json', jsonText(written.config(), 2));
      await tree.write('result.json', jsonText(written.result(), 2));
      await tree.finish();
    },
  };
}

/** Returns the texts of a trial's files by path, except for artifacts. Parts that the rollout lacks have no file. */
function filesOf(rollout: ExportedRollout, trial: Trial, lines: LineChoice): Record<string, string> {
  const { content, line } = rollout;
  const { exception_info: raised } = trial;
  const hasTrajectory = (content?.trajectory?.messages.length ?? 0) > 0;
  return {
    'config.json': jsonText(trial.config, 2),
    'result.json': jsonText(trial),
    ...(raised && { 'exception.txt': `${raised.exception_traceback || raised.exception_message}\n` }),
    ...(hasTrajectory && { 'agent/trajectory.json': trajectoryText(rollout, lines) }),
    ...(line.reward !== null && { 'verifier/reward.txt': `${line.reward}\n` }),
    ...(content?.test_log != null && { 'verifier/test-stdout.txt': content.test_log }),
    ...(content?.report && { 'verifier/report.json': jsonText(content.report) }),
  };
}

/** Collects the data of the trials that `config.json` and `result.json` of the job contain. */
function createSummary(job: Job, samples: number) {
  const trials: ReturnType<typeof countedOf>[] = [];
  const agents = new Map<string, { name: string; model_name: string | null }>();
  const tasks = new Set<string>();
  let from = Infinity;
  let to = 0;
  return {
    add(trial: Trial): void {
      const { agent, task } = trial.config;
      trials.push(countedOf(trial));
      agents.set(String(agent.model_name), agent);
      tasks.add(task.path);
      from = Math.min(from, Date.parse(trial.started_at));
      to = Math.max(to, Date.parse(trial.finished_at));
    },
    config: () => ({
      job_name: job.name,
      jobs_dir: dirname(job.folder),
      n_attempts: samples,
      agents: [...agents.values()],
      tasks: [...tasks].map((path) => ({ path })),
    }),
    result: () => ({
      id: job.id,
      started_at: localTime(from),
      updated_at: localTime(to),
      finished_at: localTime(to),
      n_total_trials: trials.length,
      stats: statsOf(trials),
    }),
  };
}

/** Returns a local time without a zone. Harbor writes the times of a job in this form, and sorts jobs by these times. */
const localTime = (ms: number): string =>
  new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
