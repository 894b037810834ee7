/** Tests instances of several dataset families in one file on Docker, with the same cases as on rootfs. */
import { familySuite } from './familysuite.ts';

familySuite('docker');
