# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# The files of a kernel package that a VM boots and loads.

# Modules for vsock between processes of a VM, in the order of their dependencies.
vsock_modules=(vsock vmw_vsock_virtio_transport_common vsock_loopback)
# The same for vgem, which exports dma-bufs.
vgem_modules=(drm drm_shmem_helper vgem)

# DEB FOLDER: extracts the kernel as `kernel`, e1000.ko, and the modules for vsock and vgem.
kernel_files() {
	local f modules=(intel/e1000/e1000 "${vsock_modules[@]/#/vmw_vsock/}" "${vgem_modules[@]}")
	modules=("${modules[@]/#/'*'/}")
	dpkg-deb --fsys-tarfile "$1" |
		tar -C "$2" -x --wildcards --transform='s|.*/||' './boot/vmlinuz-*' \
			"${modules[@]/%/.ko*}"
	mv "$2"/vmlinuz-* "$2/kernel"
	for f in "$2"/*.ko.xz; do
		[[ ! -e $f ]] || unxz "$f"
	done
}
