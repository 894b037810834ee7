/** The patch by which a plan evaluates the tree as it is. */
import type { InstancePlan } from '@swefarm/shared';

/** Adds a file of which no test knows. */
const NO_CHANGE =
  'diff --git a/swefarm-untouched.txt b/swefarm-untouched.txt\nnew file mode 100644\n--- /dev/null\n+++ b/swefarm-untouched.txt\n@@ -0,0 +1 @@\n+Nothing else is changed.\n';

/** Empty, or a patch that adds one unknown file where the plan runs no tests for an empty patch. */
export const untouchedPatch = (plan: Pick<InstancePlan, 'blank'> | null): string =>
  plan?.blank === 'ends' ? NO_CHANGE : '';
