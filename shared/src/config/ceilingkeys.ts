/** Configuration keys of ceilings. A gateway checks them at each call, a worker before each rollout. */
import { z } from 'zod';
import { plain } from './key.ts';
import * as form from './schema.ts';

const most = (schema: z.ZodType<number>, doc: string) => plain<number | null>(schema, null, doc);

export const CEILING_KEYS = {
  max_network: plain(
    z.enum(['none', 'egress']),
    'egress',
    'none: no sandbox has a network, whatever a run (agent_network, eval_network) or an instance (needs_egress) asks for.',
  ),
  max_cpus: most(
    form.positiveSeconds,
    'Most CPUs that a run may ask for one sandbox (cpus); default: what the node has.',
  ),
  max_memory_bytes: most(
    form.bytes,
    'Most memory that a run may ask for one sandbox (memory_bytes). Takes units (8G).',
  ),
  max_pids: most(form.positiveInteger, 'Most processes that a run may ask for one sandbox (pids).'),
  max_disk_bytes: most(
    form.bytes,
    'Most disk of one sandbox (disk_bytes), where the runtime can limit it; also the limit of a run that sets none. Takes units (20G).',
  ),
  max_turns: most(form.positiveInteger, 'Most turns that a run may ask for (step_limit).'),
  max_command_seconds: most(
    form.positiveSeconds,
    'Longest time that a run may give one command (step_timeout).',
  ),
  max_agent_seconds: most(
    form.positiveSeconds,
    'Longest time that a run may give the agent in all (time_limit).',
  ),
  max_evaluation_seconds: most(form.positiveSeconds, 'Longest time that a run may give the tests (timeout).'),
  max_log_bytes: most(form.bytes, 'Largest test log that a run may keep (log_limit). Takes units (64M).'),
  max_ttl_seconds: most(form.positiveInteger, 'Longest time that a run may keep its results (ttl).'),
};
