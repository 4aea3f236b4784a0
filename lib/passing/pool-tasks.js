'use strict'

// Tasks of thread pools (Piscina, Tinypool). A pool sends a queued task when a thread has finished another
// one, so the running step is unrelated to it. Each task is an AsyncResource, created when the program called
// run(), and its message has the same taskId, which identifies the caller.

const { contextOfId } = require('../core/context')
const { on } = require('../core/on')
const { isObject, own } = require('../objects')

const MIN_TASKS = 1024 // before collected ones are dropped
const FIELDS = ['taskId', 'filename', 'name'] // fields of tasks and messages, in both pools

/** @typedef {{ asyncId: number, resource: WeakRef<object> }} Task */

/** not sent yet, and not in `tasks`: their fields are set later @type {Task[]} */
let unread = []
/**
 * Tasks not sent yet, by taskId: each copy of a pool counts separately.
 * @type {Map<number, Task[]>}
 */
let tasks = new Map()
let limit = MIN_TASKS

let hasPool = false

on('taskMade', (asyncId, resource) => {
  hasPool = true
  unread.push({ asyncId, resource: new WeakRef(resource) })
  if (unread.length >= limit) read()
})

/** Groups new tasks by their ids. */
function read () {
  const fresh = unread
  unread = []
  if (tasks.size + fresh.length >= limit) {
    fresh.push(...[...tasks.values()].flat())
    tasks = new Map()
  }
  for (const task of fresh) {
    const resource = task.resource.deref()
    const id = resource && own(resource, 'taskId')
    if (typeof id !== 'number') continue // it was collected
    const same = tasks.get(id)
    if (same === undefined) tasks.set(id, [task])
    else same.push(task)
  }
  limit = Math.max(MIN_TASKS, tasks.size * 2)
}

/**
 * Returns the chain of the task that a message passes to a thread.
 * @param {unknown} message
 * @returns {number | undefined} undefined if it passes none; 0 if the caller is unknown
 */
function chainOfTask (message) {
  const id = isObject(message) ? own(message, 'taskId') : undefined
  const isTask = hasPool && isObject(message) && typeof id === 'number'
  if (!isTask || typeof own(message, 'filename') !== 'string') return undefined
  read()
  const candidates = (tasks.get(id) ?? []).flatMap((task) => {
    const resource = task.resource.deref()
    if (resource === undefined) return []
    return FIELDS.every((name) => own(resource, name) === own(message, name)) ? { task, resource } : []
  })
  if (candidates.length !== 1) return 0
  tasks.delete(id)
  const [{ task, resource }] = candidates
  return contextOfId(task.asyncId, resource)?.chain ?? 0
}

module.exports = { chainOfTask }
