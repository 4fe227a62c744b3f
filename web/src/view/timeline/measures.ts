/** The measures of the timeline, in CSS pixels. */

/** The ruler of times at its top. */
export const RULER = 24;
/** The GIL's lane below it. */
export const GIL_LANE = 26;
/** The space below that. */
export const BELOW_GIL = 8;
/** Where the lanes of threads begin. */
export const HEAD = RULER + GIL_LANE + BELOW_GIL;
/** One lane of a thread, with its margin. */
export const LANE = 24;
/** The margin below each lane. */
export const LANE_MARGIN = 5;
/** How many lanes are shown at once, at most. */
export const LANES_SHOWN = 16;
