/** Generations and probe serials stay small integers on every build of V8, so that a permit never allocates. */
export const maxSerial = 2 ** 30 - 1

/** The number after this one: 1 .. maxSerial, then 1 again. Never 0, which means "refused". */
export const nextSerial = (serial: number): number => serial >= maxSerial ? 1 : serial + 1
