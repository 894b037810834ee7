/** Ends an attempt with the rollout's result: commits it, ends the attempt in the journal, logs it in one line. */
import { summaryOf } from './attemptlog.ts';
import { type Conclusion, commitResult, failureIn } from './commitresult.ts';
import { type AfterAttempt, type AttemptContext, DONE, ignoreIfEnded, untilTakenOver } from './context.ts';
import { attemptEnd, endAttempt } from './endattempt.ts';
import { dropResumableWork } from './resume.ts';

/** Throws as commitResult does. */
export async function commitAttempt(context: AttemptContext, conclusion: Conclusion): Promise<AfterAttempt> {
  const { claimed, services, clock, log, trace } = context;
  const { job, attempt, claim, run, instance, previous } = claimed;
  const family = 'value' in instance ? instance.value.family : undefined;
  const failure = failureIn(conclusion);
  const won = await commitResult(
    { ...conclusion, job, attempt, claim, run, family, trace, clock },
    services,
    untilTakenOver(context),
  );
  const end = failure
    ? attemptEnd.failed(failure.stage, failure.class, failure.message)
    : attemptEnd.done(won);
  // The result is committed even if Redis does not accept this entry before the attempt is ended from outside.
  await endAttempt(context, end).catch(ignoreIfEnded(context));
  await dropResumableWork(services.farm, previous, services.log);
  services.metrics.attempts.inc({ class: failure?.class ?? (won ? 'done' : 'late') });
  const { fields, sentence } = summaryOf(conclusion, { won, trace, previous, seconds: clock.seconds() });
  log.info(fields, sentence);
  return DONE;
}
