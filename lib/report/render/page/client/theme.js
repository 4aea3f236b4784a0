'use strict'

// Light, dark, or as the system says. Nothing is kept: a page opened from a file shares its memory with every other.

/* global document */

const { h } = require('./dom')

const THEMES = ['auto', 'light', 'dark']

function themes () {
  /** @param {string} name */
  const choose = (name) => { document.documentElement.dataset.theme = name }
  return h('fieldset', { class: 'theme' }, h('legend', { class: 'hidden' }, 'Colours'), THEMES.map((name) => h('label', {},
    h('input', { type: 'radio', name: 'theme', value: name, checked: name === 'auto', on: { change: () => choose(name) } }),
    h('span', {}, name[0].toUpperCase() + name.slice(1)))))
}

module.exports = { themes }
