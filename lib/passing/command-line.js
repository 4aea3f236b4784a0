'use strict'

// Which script a command line of Node runs, as far as it is certain: arguments may be secrets.

const path = require('node:path')
const { types } = require('node:util')
const { own } = require('../objects')

const MAX_NAME = 60 // characters
const WITH_VALUE = new Set([
  '-r', '--require', '--import', '--loader', '--experimental-loader', '-C', '--conditions', '--env-file',
  '--inspect-port', '--title'
])
const CODE = new Set(['-e', '--eval', '-p', '--print', '-pe', '-', '--run', '--test'])

/**
 * Returns the base name of the script.
 * @param {string[]} args the first is the name of the program
 * @returns {string | undefined} undefined where there is none, or it may be the value of a flag
 */
function scriptOf (args) {
  let i = 1 + inheritedFlags(args).length
  let isCertain = true
  for (; i < args.length && args[i].startsWith('-'); i++) {
    const flag = args[i]
    if (flag === '--') {
      i++
      break
    }
    if (CODE.has(flag)) return undefined
    if (WITH_VALUE.has(flag)) i++
    else if (!flag.includes('=')) isCertain = false
  }
  if (args[i] === undefined) return undefined
  const name = path.basename(args[i])
  return isSafeName(name) && (isCertain || /\.[cm]?[jt]sx?$/.test(name)) ? name : undefined
}

/**
 * Returns the flags of this process, if a command line begins with the same, as those of fork do.
 * @param {string[]} args
 * @returns {string[]}
 */
function inheritedFlags (args) {
  const flags = textsOf(own(process, 'execArgv')) ?? []
  return flags.every((flag, i) => args[i + 1] === flag) ? flags : []
}

/**
 * Copies a list without running code of the program.
 * @param {unknown} list
 * @returns {string[] | undefined} undefined unless it has texts alone
 */
function textsOf (list) {
  if (!Array.isArray(list) || types.isProxy(list)) return undefined
  const texts = []
  for (let i = 0; i < list.length; i++) {
    const text = own(list, String(i))
    if (typeof text !== 'string') return undefined
    texts.push(text)
  }
  return texts
}

/** Whether a text can be a file's name, and has no end of a line. @param {string} name */
function isSafeName (name) {
  return name !== '' && name.length <= MAX_NAME && !/[\s=]/.test(name)
}

module.exports = { inheritedFlags, isSafeName, scriptOf, textsOf }
