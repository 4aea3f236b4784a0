'use strict'

// Each path and link on the readers' pages leads to a file. A part of a path in capital letters is a
// placeholder.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { root } = require('../helpers/run')

const GENERATED = /^lib\/start\/bundle/ // not in a fresh checkout
const MAX_README_LINES = 200
const PLACEHOLDER = /\b[A-Z]{2,}\b/

const docs = fs.readdirSync(path.join(root, 'docs')).filter((name) => name.endsWith('.md'))
const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...docs.map((name) => `docs/${name}`)]
const textOf = (/** @type {string} */ page) => fs.readFileSync(path.join(root, page), 'utf8')
const exists = (/** @type {string} */ name) => fs.existsSync(path.join(root, name))

for (const page of pages) {
  test(`paths in ${page} exist`, (t) => {
    const paths = textOf(page).match(/(?<![\w./@-])(?:lib|report|native|test|bench|examples)\/[\w./-]*[\w/]/g) ?? []
    const missing = paths.filter((name) => !GENERATED.test(name) && !PLACEHOLDER.test(name))
      .filter((name) => !exists(name) && !exists(`${name}.js`))
    t.deepEqual([...new Set(missing)], [])
  })

  test(`links in ${page} resolve`, (t) => {
    const links = [...textOf(page).matchAll(/\]\((?!https?:|#)([^)#]+)(?:#([^)]*))?\)/g)]
    const missing = links.filter(([, file, anchor]) => {
      const target = path.posix.join(path.posix.dirname(page), file)
      return !exists(target) || (anchor !== undefined && !anchors(textOf(target)).includes(anchor))
    }).map(([link]) => link)
    t.deepEqual(missing, [])
  })
}

test('names in CONTRIBUTING.md occur in the files that their item names', (t) => {
  const items = textOf('CONTRIBUTING.md').split(/\n(?=\d\. |\n)/).filter((item) => /^\d\. /.test(item))
  for (const item of items) {
    const files = [...item.matchAll(/`((?:lib|report|test|docs)\/[\w./-]+\.js)`/g)].map(([, name]) => name).filter(exists)
    const names = [...item.matchAll(/`([a-z]+(?:[A-Z]\w*)?)`/g)].map(([, name]) => name)
    const code = files.map(textOf).join('\n')
    const missing = names.filter((name) => !new RegExp(`\\b${name}\\b`).test(code))
    t.deepEqual(files.length === 0 ? [] : missing, [], item)
  }
})

test(`README.md has at most ${MAX_README_LINES} lines`, (t) => {
  t.true(textOf('README.md').split('\n').length - 1 <= MAX_README_LINES)
})

/** Lists the anchors that GitHub gives to headings; equal ones are numbered. @param {string} text */
function anchors (text) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => {
    const anchor = heading.toLowerCase().replace(/[^\w\- ]/g, '').replaceAll(' ', '-')
    const count = counts.get(anchor) ?? 0
    counts.set(anchor, count + 1)
    return count === 0 ? anchor : `${anchor}-${count}`
  })
}
