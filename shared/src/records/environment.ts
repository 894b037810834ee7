/** What the sandboxes of an instance need beyond the settings of the run. */
import { z } from 'zod';
import { MOST } from './bounds.ts';

const seconds = z.number().positive().max(MOST.seconds);
const folder = z.string().regex(/^\/[^\0\n]*$/, { error: 'expected an absolute path' });

/** A bash command of the setup of a sandbox or of an evaluation. It runs by plain exec in the working folder. */
export const Step = z.object({
  /** Name for error messages: `check out the commit`. */
  name: z.string().min(1),
  script: z.string(),
  /** Whether a failure is ignored, as in the harness of the family. Otherwise the attempt fails, or (step after the patch) no tests run. */
  may_fail: z.boolean().default(false),
  timeout: seconds.default(600),
});
export type Step = z.infer<typeof Step>;

/** A setup step. `roles`: the sandboxes in which the step runs. */
export const SetupStep = Step.extend({
  roles: z.array(z.enum(['agent', 'evaluation'])).default(['agent', 'evaluation']),
});

export const InstanceEnvironment = z.object({
  /** Path of the repository in the image; absent: the `sandbox.workdir` of the run. */
  workdir: folder.optional(),
  /** Shell text that replaces the `sandbox.activate` of the run; empty: none. */
  activate: z.string().optional(),
  /** Environment variables that are added to those of the image, for the agent, the setup and the evaluation. */
  env: z.record(z.string(), z.string()).default({}),
  setup: z.array(SetupStep).max(MOST.setupSteps).default([]),
  /** Files and folders that reveal the solution; they are removed from the agent's sandbox before the first command. */
  hidden: z.array(folder).default([]),
  /** Git history for the agent: the history of HEAD (`pruned`), or one commit (`replaced`) if the history of HEAD reveals the solution. */
  history: z.enum(['pruned', 'replaced']).default('pruned'),
  /** Minimum resources, as in the family's harness. A node with less memory does not judge patches whose tests were killed for memory. */
  cpus: z.number().positive().max(MOST.cpus).optional(),
  memory_bytes: z.number().int().positive().max(MOST.bytes).optional(),
});
export type InstanceEnvironment = z.infer<typeof InstanceEnvironment>;
