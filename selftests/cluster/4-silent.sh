# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016,SC2317
# A case in which a node does not answer though its link is up. Part of
# scripts/cluster-check.

# All stream buffers together may become 128 packets of 16 bytes. With slots for 8 of them
# the card needs 16 rounds of repetitions.
few_slots=streams=16,stream-size=128,outstanding=8

# PROPERTIES: replace node 4's card by one with these QEMU properties
replace_card() {
	cluster monitor 4 device_del sci || return
	within 20 card_is 4 gone || return
	cluster monitor 4 device_add "$(cat "$D/4/adapter")$1" || return
	within 20 card_is 4 there || return
	on 4 chmod 666 /dev/sci0 || return
	within 20 link_is 4 up
}

fall_silent() {
	local env="SCI_TEST_FABRIC=dev" peer=0 status=0
	((nodes < 3)) || peer=12
	on 4 'rm -f /tmp/silent-*'
	begin server-8 8 "$env SCI_TEST_NODE=8 $build/$tests/silent server_of_lines"
	((!peer)) || begin server-12 12 "$env SCI_TEST_NODE=12 $build/$tests/silent server"
	begin client 4 "$env SCI_TEST_NODE=4 CLUSTER_SILENT=8 CLUSTER_PEER=$peer \
		CLUSTER_DATA_PATH=$path $build/$tests/silent client"
	within 60 on 4 '[ -e /tmp/silent-ready ]' || return
	kill -STOP "$(<"$D/8/qemu.pid")" || return
	injected 1
	on 4 'touch /tmp/silent-go'
	end client || status=1
	((!peer)) || end server-12 || status=1
	kill -CONT "$(<"$D/8/qemu.pid")"
	if [[ $path == direct ]]; then
		end server-8 || status=1
	else
		on 8 'killall -9 silent; true'
	fi
	return "$status"
}

case_a_node_falls_silent_amid_stores() {
	local status=0
	replace_card ",$few_slots" || return
	fall_silent || status=1
	replace_card '' || return
	return "$status"
}
