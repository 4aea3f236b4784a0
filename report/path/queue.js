'use strict'

/**
 * Returns how long each task was queued, if a number of servers took them in order: one was free when all but
 * size - 1 of the earlier tasks had ended.
 * @template {{ start: number, end: number }} T
 * @param {T[]} tasks
 * @param {number} size servers
 * @returns {{ queued: Map<T, number>, most: number }} ms; most: queued and running at once
 */
function queuedOf (tasks, size) {
  const inOrder = tasks.slice().sort((a, b) => a.start - b.start)
  const ends = inOrder.map(({ end }) => end).sort((a, b) => a - b)
  let [ended, most] = [0, 0]
  const queued = new Map(inOrder.map((task, i) => {
    const { start, end } = task
    while (ends[ended] <= start && ended < i) ended++
    most = Math.max(most, i + 1 - ended)
    return [task, i < size ? 0 : Math.max(0, Math.min(ends[i - size], end) - start)]
  }))
  return { queued, most }
}

module.exports = { queuedOf }
