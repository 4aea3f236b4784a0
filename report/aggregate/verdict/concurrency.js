'use strict'

// How many requests of those that take turns ran at a time.

const MIN_PART = 0.6 // of the time in which some waited: else the number changes, or is not to be known

/**
 * Returns how many ran at a time while others waited for their turn.
 * @param {number[][]} intervals of requests: start, ms of the turn, end
 * @returns {number | undefined} undefined if it was not the same for most of that time
 */
function concurrencyOf (intervals) {
  /** @type {Array<[time: number, running: number, waiting: number]>} */
  const changes = intervals.flatMap(([start, turn, end]) => [
    [start, 0, 1],
    [start + turn, 1, -1],
    [end, -1, 0]
  ])
  changes.sort((a, b) => a[0] - b[0])
  /** @type {Map<number, number>} */
  const times = new Map()
  let [running, waiting, sum] = [0, 0, 0]
  changes.forEach(([time, more, waiters], i) => {
    running += more
    waiting += waiters
    const ms = i + 1 < changes.length ? changes[i + 1][0] - time : 0
    if (waiting <= 0) return
    sum += ms
    times.set(running, (times.get(running) ?? 0) + ms)
  })
  for (const [count, ms] of times) if (count > 0 && ms >= sum * MIN_PART) return count
  return undefined
}

module.exports = { concurrencyOf }
