# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
deck_SONAME := libdeck.so.0
deck_MAP := libsci/deck/deck.map
