/**
 * Drives sandboxes of a whole farm with the unmodified classes of other projects: mini-swe-agent, SWE-ReX, SWE-agent, OpenHands SDK and
 * NeMo Gym. `node testkit/clients/sandbox/run.ts --venvs DIR [--runtime docker|rootfs] [--only LOOP,…] [--swe-agent CHECKOUT]`;
 * setup.sh makes the venvs. SWE-agent is not on PyPI: with a checkout of it the loop `sweagent` runs too.
 */
import { execFile, spawn } from 'node:child_process';
import { cp, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs, promisify } from 'node:util';
import { startFarm } from '../gym/farm.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
/** Loops, and the venvs in which they run. */
const VENVS = {
  mini: 'mini',
  swerex: 'mini',
  openhands: 'openhands',
  gym: 'gym-0.7.0',
  sweagent: 'sweagent',
};
type Loop = keyof typeof VENVS;

const { values } = parseArgs({
  options: {
    venvs: { type: 'string' },
    runtime: { type: 'string', default: 'docker' },
    'swe-agent': { type: 'string' },
    only: { type: 'string', default: 'mini,swerex,openhands,gym' },
  },
});
if (values.venvs === undefined) {
  console.error('usage: run.ts --venvs DIR [--runtime docker|rootfs] [--only LOOP,…]');
  process.exit(2);
}
const venvs = resolve(values.venvs);
const runtime = values.runtime === 'rootfs' ? 'rootfs' : 'docker';
await using farm = await startFarm({ venv: venvs, runtime, numbers: {} }, { concurrency: 2, delayMs: 0 });
const { check, built, folder, port, token } = farm;
const row = join(folder, 'row.json');
await writeFile(row, JSON.stringify(built.rows[0]));
const loops = values.only.split(',') as Loop[];
const sweAgent = values['swe-agent'];
if (sweAgent !== undefined) loops.push('sweagent');
// Gym finds the provider by the entry point of the installed package. The build writes beside the sources, so it works on a copy.
const sources = join(folder, 'python');
const site = join(folder, 'site');
await cp(join(ROOT, 'producer/python'), sources, { recursive: true });
const install = ['-m', 'pip', 'install', '-q', '--no-deps', '--target', site, sources];
await promisify(execFile)(join(venvs, VENVS[loops[0] ?? 'mini'], 'bin/python'), install);
await farm.finish(driveAll(loops));

async function driveAll(loops: readonly Loop[]): Promise<void> {
  for (const loop of loops) {
    const from = performance.now();
    const { code, stdout, stderr } = await drive(loop);
    const seconds = ((performance.now() - from) / 1000).toFixed(1);
    const line = stdout.trim().split('\n').at(-1) ?? '';
    check(`rc of ${loop}: ${code === 0 ? '' : stderr.slice(-3000)}`, code, 0);
    const { checks, turns } = code === 0 ? JSON.parse(line) : { checks: {}, turns: 0 };
    for (const [name, value] of Object.entries(checks)) check(`${loop}: ${name}`, value, true);
    console.log(`${loop}: ${Object.keys(checks).length} checks, ${turns} turns, ${seconds} s`);
  }
}

async function drive(loop: Loop): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const python = join(venvs, VENVS[loop], 'bin/python');
  const child = spawn(python, [join(import.meta.dirname, 'drive.py'), loop, row], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      PYTHONPATH: [site, ...(sweAgent === undefined ? [] : [resolve(sweAgent)])].join(':'),
      SWEFARM_GATEWAY_URL: `http://127.0.0.1:${port}`,
      SWEFARM_GATEWAY_TOKEN: token,
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
      MSWEA_SILENT_STARTUP: '1',
      SWE_AGENT_TRAJECTORY_DIR: folder,
    },
  });
  const ended = new Promise<number | null>((end) => child.once('close', end));
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}
