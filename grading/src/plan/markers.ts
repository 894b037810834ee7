/** Texts that the harnesses write into logs and search there. */
export const START_MARKER = '>>>>> Start Test Output';
export const END_MARKER = '>>>>> End Test Output';
export const EXIT_CODE_MARKER = '>>>>> Test Exit Code';

/** A log that contains any of these is not read. */
export const BAD_CODES = [
  '>>>>> Patch Apply Failed',
  '>>>>> Reset Failed',
  '>>>>> Tests Errored',
  '>>>>> Tests Timed Out',
];
