/** Instances of several dataset families in one file on Docker, by the same table of cases as on rootfs. */
import { familySuite } from './familysuite.ts';

familySuite('docker');
