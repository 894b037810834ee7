/** Configuration keys of ceilings (highest values that a run may set). Gateways check them at each call, workers before each rollout. */
import { z } from 'zod';
import { plain } from './key.ts';
import * as form from './schema.ts';

const most = (schema: z.ZodType<number>, doc: string) => plain<number | null>(schema, null, doc);

export const CEILING_KEYS = {
  max_network: plain(
    z.enum(['none', 'egress']),
    'egress',
    'none: no sandbox has a network, whatever a run or an instance asks for.',
  ),
  max_cpus: most(form.positiveSeconds, 'Ceiling of CPUs of a sandbox (cpus).'),
  max_memory_bytes: most(form.bytes, 'Ceiling of memory of a sandbox (memory_bytes).'),
  max_pids: most(form.positiveInteger, 'Ceiling of processes of a sandbox (pids).'),
  max_disk_bytes: most(
    form.bytes,
    'Ceiling of disk of a sandbox (disk_bytes), and the limit of a run that sets none.',
  ),
  max_turns: most(form.positiveInteger, 'Ceiling of turns (step_limit).'),
  max_command_seconds: most(form.positiveSeconds, 'Ceiling of the time of a command (step_timeout).'),
  max_agent_seconds: most(form.positiveSeconds, 'Ceiling of the time of the agent (time_limit).'),
  max_evaluation_seconds: most(form.positiveSeconds, 'Ceiling of the time of the tests (timeout).'),
  max_log_bytes: most(form.bytes, 'Ceiling of the test log (log_limit).'),
  max_ttl_seconds: most(form.positiveInteger, 'Ceiling of the life of results (ttl).'),
};
