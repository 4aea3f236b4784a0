'use strict'

// Linux's control groups, as containers use them.

const fs = require('node:fs')
const path = require('node:path')

const ROOT = '/sys/fs/cgroup'
let groups = 0

/**
 * Makes a cgroup with a limit.
 * @param {import('ava').ExecutionContext} t
 * @param {string} controller
 * @param {string[]} files of the limit, by version of cgroups
 * @returns {{ enter: string, limit: (value: number) => void } | undefined} enter: for the shell that
 *   becomes the program; undefined if this process may not set limits
 */
function makeGroup (t, controller, files) {
  for (const parent of [path.join(ROOT, controller), ROOT]) {
    const group = path.join(parent, `longstack-${process.pid}-${groups++}`)
    try {
      fs.mkdirSync(group)
    } catch {
      continue
    }
    t.teardown(() => fs.rmdirSync(group))
    const file = files.map((name) => path.join(group, name)).find((name) => fs.existsSync(name))
    if (file === undefined) continue // an ordinary directory, or this controller does not apply to it
    return {
      enter: `echo $$ > ${group}/cgroup.procs`,
      limit (value) { fs.writeFileSync(file, String(value)) }
    }
  }
  t.log(`not tried: this process may not make a cgroup that limits ${controller}`)
  t.pass()
}

module.exports = { makeGroup }
