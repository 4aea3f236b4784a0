'use strict'

// How much the number of open handles of a thread grows, by what they are and where they were opened.

const WINDOW_MS = 60_000
const STEP_MS = 1000 // between two counts that are kept
const MAX_GROUPS = 1000

class Growth {
  /** counts of the last minute, oldest first @type {Map<string, Array<{ time: number, count: number }>>} */
  #counts = new Map()
  #lastTime = NaN

  /**
   * Notes what is open in the thread, all of it.
   * @param {Map<string, number>} counts by group
   * @param {number} time ms
   */
  add (counts, time) {
    for (const key of this.#counts.keys()) if (!counts.has(key)) this.#counts.delete(key)
    for (const [key, count] of counts) this.#note(key, count, time)
    this.#lastTime = time
  }

  /** @param {string} key @param {number} count @param {number} time */
  #note (key, count, time) {
    const list = this.#counts.get(key)
    if (list === undefined) {
      if (this.#counts.size >= MAX_GROUPS) return
      const start = Number.isNaN(this.#lastTime) ? [] : [{ time: this.#lastTime, count: 0 }]
      this.#counts.set(key, [...start, { time, count }])
      return
    }
    const last = list[list.length - 1]
    if (list.length > 1 && time - list[list.length - 2].time < STEP_MS) Object.assign(last, { time, count })
    else list.push({ time, count })
    while (list.length > 2 && time - list[1].time >= WINDOW_MS) list.shift()
  }

  /** Returns by how many a group grew in a minute. @param {string} key @returns {number | undefined} */
  perMinute (key) {
    const list = this.#counts.get(key)
    if (list === undefined) return undefined
    const [first] = list
    const last = list[list.length - 1]
    const ms = last.time - first.time
    return ms < STEP_MS ? undefined : (last.count - first.count) / ms * 60_000
  }
}

module.exports = { Growth }
