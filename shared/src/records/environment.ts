/** What the sandboxes of one instance need beyond the run's own settings: where its code lies, what is run before anybody works, what is hidden. */
import { z } from 'zod';
import { MOST } from './bounds.ts';

const seconds = z.number().positive().max(MOST.seconds);
const folder = z.string().regex(/^\/[^\0\n]*$/, { error: 'expected an absolute path' });

/** One command of a sandbox's setup or of an evaluation: bash text, run by plain exec in the working folder. */
export const Step = z.object({
  /** Stands in errors: `check out the commit`. */
  name: z.string().min(1),
  script: z.string(),
  /** The family's own harness passes over a failure of it. Otherwise a failure is the instance's fault, and never a verdict. */
  may_fail: z.boolean().default(false),
  timeout: seconds.default(600),
});
export type Step = z.infer<typeof Step>;

/** A step of the setup. `roles`: the sandboxes in which it runs; the same text runs in the agent's and in the clean one. */
export const SetupStep = Step.extend({
  roles: z.array(z.enum(['agent', 'evaluation'])).default(['agent', 'evaluation']),
});
export type SetupStep = z.infer<typeof SetupStep>;

export const InstanceEnvironment = z.object({
  /** The repository in the image; absent: the run's `sandbox.workdir`. */
  workdir: folder.optional(),
  /** As the run's `sandbox.activate`, in place of it; '' for none. */
  activate: z.string().optional(),
  /** Added to the image's environment, for the agent, the setup and the evaluation. */
  env: z.record(z.string(), z.string()).default({}),
  setup: z.array(SetupStep).max(MOST.setupSteps).default([]),
  /** Files and folders that answer the task: removed from the agent's sandbox before its first command; the clean one has them. */
  hidden: z.array(folder).default([]),
  /**
   * What the agent sees of the repository's history: `pruned` is the history of HEAD without what came later; `replaced` is one commit
   * of the tree as the setup left it, because the history of HEAD tells the answer.
   */
  history: z.enum(['pruned', 'replaced']).default('pruned'),
  /**
   * What the family's own harness gives a container, where that is more than the run gives. A node with less memory gives what it has,
   * and never judges a patch whose tests were killed for memory there.
   */
  cpus: z.number().positive().max(MOST.cpus).optional(),
  memory_bytes: z.number().int().positive().max(MOST.bytes).optional(),
});
export type InstanceEnvironment = z.infer<typeof InstanceEnvironment>;
