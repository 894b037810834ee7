export const START_MARKER = '>>>>> Start Test Output';
export const END_MARKER = '>>>>> End Test Output';
export const EXIT_CODE_MARKER = '>>>>> Test Exit Code';

/** The harness does not read a log that contains one of these texts. */
export const BAD_CODES = [
  '>>>>> Patch Apply Failed',
  '>>>>> Reset Failed',
  '>>>>> Tests Errored',
  '>>>>> Tests Timed Out',
];
