/** What the sandboxes of an instance need beyond the settings of the run. */
import { z } from 'zod';
import { MOST } from './bounds.ts';

const seconds = z.number().positive().max(MOST.seconds);
const folder = z.string().regex(/^\/[^\0\n]*$/, { error: 'expected an absolute path' });

/** A bash command of a sandbox's setup or of an evaluation, run by plain exec in the working folder. */
export const Step = z.object({
  /** For errors: `check out the commit`. */
  name: z.string().min(1),
  script: z.string(),
  /** Whether the family's harness ignores a failure. Otherwise a failure is a failure of the instance. */
  may_fail: z.boolean().default(false),
  timeout: seconds.default(600),
});
export type Step = z.infer<typeof Step>;

/** `roles`: the sandboxes in which the step runs. */
export const SetupStep = Step.extend({
  roles: z.array(z.enum(['agent', 'evaluation'])).default(['agent', 'evaluation']),
});
export type SetupStep = z.infer<typeof SetupStep>;

export const InstanceEnvironment = z.object({
  /** The repository in the image; absent: the run's `sandbox.workdir`. */
  workdir: folder.optional(),
  /** Replaces the run's `sandbox.activate`; '' for none. */
  activate: z.string().optional(),
  /** Added to the image's environment, for the agent, the setup and the evaluation. */
  env: z.record(z.string(), z.string()).default({}),
  setup: z.array(SetupStep).max(MOST.setupSteps).default([]),
  /** Files and folders that reveal the solution, removed from the agent's sandbox before its first command. */
  hidden: z.array(folder).default([]),
  /** History for the agent: `pruned` is the history of HEAD; `replaced` is one commit, because the history of HEAD reveals the solution. */
  history: z.enum(['pruned', 'replaced']).default('pruned'),
  /**
   * Minimum resources, as in the family's harness. A node with less memory provides its own, and does not judge a patch whose tests
   * were killed for memory.
   */
  cpus: z.number().positive().max(MOST.cpus).optional(),
  memory_bytes: z.number().int().positive().max(MOST.bytes).optional(),
});
export type InstanceEnvironment = z.infer<typeof InstanceEnvironment>;
