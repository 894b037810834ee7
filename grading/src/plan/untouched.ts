import type { InstancePlan } from '@swefarm/shared';

const NO_CHANGE =
  'diff --git a/swefarm-untouched.txt b/swefarm-untouched.txt\nnew file mode 100644\n--- /dev/null\n+++ b/swefarm-untouched.txt\n@@ -0,0 +1 @@\n+Nothing else is changed.\n';

/** Returns a patch for evaluating the unchanged tree: empty, or an unrelated new file if the plan runs no tests for an empty patch. */
export const untouchedPatch = (plan: Pick<InstancePlan, 'blank'> | null): string =>
  plan?.blank === 'ends' ? NO_CHANGE : '';
