'use strict'

// The files that test/helpers/scope.js names for a version of Node, a platform or `npm test` exist: a renamed
// file would silently run everywhere, or nowhere.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { core, coreInPart, onOldest, onOldestAndNewest, onPlatforms, onWindows } = require('../helpers/scope')
const { root } = require('../helpers/run')

const names = fs.readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.js'))
  .map((name) => name.slice(0, -'.test.js'.length).replaceAll(path.sep, '/'))

/** Lists what a pattern stands for: `{a,b}` is two. @param {string} pattern @returns {string[]} */
function alternatives (pattern) {
  const [, start, list, end] = /^(.*)\{(.*)\}(.*)$/.exec(pattern) ?? []
  return list === undefined ? [pattern] : list.split(',').map((name) => `${start}${name}${end}`)
}

/** @param {string} pattern without braces */
function regularExpression (pattern) {
  return new RegExp(`^${pattern.replaceAll('.', '\\.').replace(/\*+/g, (stars) => stars === '*' ? '[^/]*' : '.*')}$`)
}

const lists = { core, coreInPart, onOldest, onOldestAndNewest, onPlatforms, onWindows }
for (const [list, patterns] of Object.entries(lists)) {
  test(`${list} names existing files`, (t) => {
    const expressions = patterns.flatMap(alternatives).map(regularExpression)
    t.deepEqual(expressions.filter((expression) => !names.some((name) => expression.test(name))), [])
  })
}
