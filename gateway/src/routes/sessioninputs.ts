/** Routes by which a driver works in the sandbox of its session: commands, files, the patch so far, and the clock. */

import { createHash } from 'node:crypto';
import {
  SandboxPath,
  SESSION_FILE_BYTES,
  SESSION_OUTPUT_BYTES,
  SessionInput,
  SessionState,
} from '@swefarm/shared';
import { z } from 'zod';
import type { App } from '../access/app.ts';
import type { RouteDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { documented } from './answers.ts';
import {
  Encoding,
  giveInput,
  InputReply,
  requireAllInputs,
  requireSession,
  SessionParams,
  unknownSession,
  WaitSeconds,
} from './giveinput.ts';

const Seq = z.number().int().positive().meta({ description: 'counted by the caller from 1, without gaps' });

const command = SessionInput.options[0].shape;

const CommandRequest = z.strictObject({
  seq: Seq,
  command: z.string().max(1_000_000),
  timeout_s: z.number().positive().optional(),
  cwd: command.cwd.meta({ description: 'folder, relative to the work folder' }),
  env: command.env.meta({ description: 'variables of this command alone' }),
  raw_bytes: command.raw.meta({
    description: `answer with up to so many bytes of raw output (at most ${SESSION_OUTPUT_BYTES}); the command then never submits`,
  }),
  wait_s: WaitSeconds,
});

const WriteRequest = z.strictObject({
  seq: Seq,
  path: SandboxPath,
  data: z.string().max(Math.ceil(SESSION_FILE_BYTES / 3) * 4),
  encoding: Encoding.default('utf-8'),
  mode: z.number().int().min(0).max(0o7777).default(0o644),
  wait_s: WaitSeconds,
});

const ReadRequest = z.strictObject({
  seq: Seq,
  path: SandboxPath,
  max_bytes: z.number().int().positive().max(SESSION_FILE_BYTES).default(SESSION_FILE_BYTES),
  wait_s: WaitSeconds,
});

const DiffRequest = z.strictObject({ seq: Seq, wait_s: WaitSeconds });

const ClockRequest = z.strictObject({ paused: z.boolean() });

/** Adds the routes. Each input has a number, by which a repeated request gets the answer of the first. */
export function sessionInputRoutes(app: App, deps: RouteDeps): void {
  const { farm } = deps;
  const params = SessionParams;
  app.post(
    '/v1/sessions/:id/commands',
    documented(
      'Give a command and wait for its answer',
      InputReply,
      { params, body: CommandRequest },
      ...([404, 409, 410] as const),
    ),
    ({ params: { id }, body }, reply) => {
      const { command, timeout_s, cwd, env, raw_bytes: raw } = body;
      // Absent keys stay absent: a repeated command is recognised by its text.
      const more = { ...(cwd === undefined ? {} : { cwd }), ...(env === undefined ? {} : { env }) };
      const input = { kind: 'command' as const, command, timeout: timeout_s ?? null, ...more };
      return giveInput(deps, id, body, raw === undefined ? input : { ...input, raw }, reply);
    },
  );
  app.post(
    '/v1/sessions/:id/files/write',
    documented('Write a file', InputReply, { params, body: WriteRequest }, 404, 409, 410),
    ({ params: { id }, body }, reply) => {
      const content = bytesOf(body);
      const sha256 = createHash('sha256').update(content).digest('hex');
      const { path, mode } = body;
      const input = { kind: 'write' as const, path, mode, bytes: content.length, sha256 };
      return giveInput(deps, id, body, input, reply, content);
    },
  );
  app.post(
    '/v1/sessions/:id/files/read',
    documented('Read a regular file', InputReply, { params, body: ReadRequest }, 404, 409, 410),
    ({ params: { id }, body }, reply) =>
      giveInput(deps, id, body, { kind: 'read', path: body.path, max_bytes: body.max_bytes }, reply),
  );
  app.post(
    '/v1/sessions/:id/diff',
    documented('Read the patch so far', InputReply, { params, body: DiffRequest }, 404, 409, 410),
    ({ params: { id }, body }, reply) => giveInput(deps, id, body, { kind: 'diff' }, reply),
  );
  app.post(
    '/v1/sessions/:id/clock',
    documented(
      'Stop the time limit until the next input, or start it again',
      SessionState,
      { params, body: ClockRequest },
      ...([404, 409] as const),
    ),
    async ({ params: { id }, body: { paused } }) => {
      await requireAllInputs(farm, id);
      const set = await farm.sessions.setClock(id, paused);
      if (set === 'gone') throw unknownSession(id);
      const busy = 'an input has no answer yet: stop the clock after the answer';
      if (set === 'busy') throw new Refusal(409, 'clock_runs', `paused: ${busy}`, { field: 'paused' });
      return await requireSession(farm, id);
    },
  );
}

/** @throws Refusal 400, 413 */
function bytesOf({ data, encoding }: z.infer<typeof WriteRequest>): Buffer {
  const refuse = (status: number, code: string, text: string): Refusal =>
    new Refusal(status, code, `data: ${text}`, { field: 'data' });
  const bytes = Buffer.from(data, encoding === 'base64' ? 'base64' : 'utf8');
  // The decoder skips what is no base64.
  if (encoding === 'base64' && bytes.toString('base64').replace(/=+$/, '') !== data.replace(/=+$/, ''))
    throw refuse(400, 'bad_request', 'expected base64 without line breaks');
  if (bytes.length > SESSION_FILE_BYTES)
    throw refuse(413, 'too_large', `more than ${SESSION_FILE_BYTES} bytes; write it in parts`);
  return bytes;
}
