/** Prints the version of this software. */
import { softwareVersion } from '@swefarm/shared';

export const printVersion = (): void => console.log(softwareVersion());
