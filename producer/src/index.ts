export { newRunRecord } from './run/record.ts';
export { submit } from './run/submit.ts';
