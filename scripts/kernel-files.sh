# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# The files of a kernel package that a VM boots and loads.

# Modules for vsock between processes of a VM, for vgem, which exports dma-bufs, for cables
# between network namespaces, for NVDIMMs, and for the network of a cluster, each in the order
# of their dependencies.
vsock_modules=(vsock vmw_vsock_virtio_transport_common vsock_loopback)
vgem_modules=(drm drm_shmem_helper vgem)
netem_modules=(veth sch_netem)
nvdimm_modules=(libnvdimm nfit)
# a test loads these drivers of namespaces by itself
pmem_modules=(nd_btt nd_pmem)
network_modules=(failover net_failover virtio_ring virtio virtio_pci_modern_dev
	virtio_pci_legacy_dev virtio_pci virtio_net)

# Names this set of files.
kernel_files_hash() {
	printf '%s\n' "${vsock_modules[@]}" "${vgem_modules[@]}" "${netem_modules[@]}" \
		"${nvdimm_modules[@]}" "${pmem_modules[@]}" "${network_modules[@]}" |
		sha256sum | cut -c -12
}

# DEB FOLDER: extracts the kernel as `kernel`, and the modules.
kernel_files() {
	local f modules=("${vsock_modules[@]}" "${vgem_modules[@]}" "${netem_modules[@]}"
		"${nvdimm_modules[@]}" "${pmem_modules[@]}" "${network_modules[@]}")
	modules=("${modules[@]/#/*/}")
	dpkg-deb --fsys-tarfile "$1" |
		tar -C "$2" -x --wildcards --transform='s|.*/||' './boot/vmlinuz-*' \
			"${modules[@]/%/.ko*}"
	mv "$2"/vmlinuz-* "$2/kernel"
	for f in "$2"/*.ko.xz; do
		[[ ! -e $f ]] || unxz "$f"
	done
}
